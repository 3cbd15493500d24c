// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BASE_FUNCTION_H_
#define TFPLUG_BASE_FUNCTION_H_

#include <string>

#pragma GCC visibility push(hidden)

namespace tfplug {

// The value of an attribute of type "func".
struct Function {
  std::string name;
  // A serialized tensorflow.NameAttrList: the name and the attributes.
  std::string name_attr_list;
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_BASE_FUNCTION_H_
