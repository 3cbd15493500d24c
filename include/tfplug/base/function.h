// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_FUNCTION_H_
#define TFPLUG_BASE_FUNCTION_H_

#include <string>

namespace tfplug {

// A function as the value of an attribute.
struct Function {
  std::string name;
  // The serialised tensorflow.NameAttrList: the name and its attributes.
  std::string name_attr_list;
};

}  // namespace tfplug

#endif  // TFPLUG_BASE_FUNCTION_H_
