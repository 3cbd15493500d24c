// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_INTERNAL_SHARED_SETTINGS_H_
#define TFPLUG_PASSES_INTERNAL_SHARED_SETTINGS_H_

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "tfplug/abi/tp_optimizer.h"
#include "tfplug/abi/tp_optimizer_configs.h"
#include "tfplug/abi/tp_optimizer_registration_params.h"
#include "tfplug/base/internal/loaded_libraries.h"
#include "tfplug/base/internal/log.h"
#include "tfplug/graph/internal/toggle_fields.h"

#pragma GCC visibility push(hidden)

// In a graph with nodes on the devices of two plug-ins whose settings differ,
// TensorFlow 2.10 to 2.22 crashes: before it warns of the difference, it pads
// the names of the settings to 32 characters and throws std::length_error for
// auto_mixed_precision_onednn_bfloat16, which has 36. The settings of all
// plug-ins in a process must therefore be equal.
//
// When TensorFlow calls TF_InitGraph, a library asks each other library in the
// process for its settings by calling its TF_InitGraph. It uses the settings
// that TensorFlow already has, or cannot change; otherwise, a rewriter is off
// if any library turns it off.
namespace tfplug::passes_internal {

// The argument of TF_InitGraph in such a question. A library without tfplug
// sees a longer TP_OptimizerRegistrationParams, as from a newer TensorFlow.
struct SettingsQuery {
  static constexpr uint64_t kMagic = 0x7466706c75673f31;  // "tfplug?1"

  capi::TP_OptimizerRegistrationParams params;
  uint64_t magic;
  // Out:
  int32_t is_answered;    // the library uses tfplug
  int32_t is_registered;  // TensorFlow has its settings
};

// The settings of another library.
struct OtherSettings {
  std::string device_type;
  std::string path;
  capi::TP_OptimizerConfigs configs;
  // Whether TensorFlow has the settings, or the library does not adapt them.
  bool is_fixed;
};

// The settings of this library, once TensorFlow has them.
struct RegisteredSettings {
  bool is_registered = false;
  capi::TP_OptimizerConfigs configs = {};
  internal::LibraryCursor checked;
};
inline RegisteredSettings registered_settings;

// Answers the question of another library; false if TensorFlow is the caller.
inline bool AnswerQuery(capi::TP_OptimizerRegistrationParams* params,
                        const capi::TP_OptimizerConfigs& wanted) {
  auto* const query = reinterpret_cast<SettingsQuery*>(params);
  if (params->struct_size != sizeof(SettingsQuery) ||
      query->magic != SettingsQuery::kMagic) {
    return false;
  }
  const bool is_registered = registered_settings.is_registered;
  *params->optimizer_configs =
      is_registered ? registered_settings.configs : wanted;
  query->is_answered = 1;
  query->is_registered = is_registered ? 1 : 0;
  return true;
}

// Asks the libraries that `cursor` has not seen for their settings.
inline std::vector<OtherSettings> AskOthers(internal::LibraryCursor& cursor) {
  std::vector<OtherSettings> others;
  for (const internal::LoadedLibrary& library :
       cursor.FindNew("TF_InitGraph")) {
    capi::TP_OptimizerConfigs configs = {};
    configs.struct_size = sizeof(configs);
    capi::TP_Optimizer optimizer = {};
    optimizer.struct_size = sizeof(optimizer);
    SettingsQuery query = {};
    query.magic = SettingsQuery::kMagic;
    query.params.struct_size = sizeof(query);
    query.params.patch_version = 1;
    query.params.optimizer_configs = &configs;
    query.params.optimizer = &optimizer;
    capi::TF_Status* const status = internal::tensorflow.TF_NewStatus();
    reinterpret_cast<void (*)(capi::TP_OptimizerRegistrationParams*,
                              capi::TF_Status*)>(library.symbol)(&query.params,
                                                                 status);
    const bool is_ok = internal::tensorflow.TF_GetCode(status) == capi::TF_OK;
    internal::tensorflow.TF_DeleteStatus(status);
    if (!is_ok) continue;  // TensorFlow rejects it, too.
    const char* const type = query.params.device_type;
    others.push_back({type != nullptr ? type : "another device", library.path,
                      configs,
                      query.is_answered == 0 || query.is_registered != 0});
  }
  return others;
}

// Returns `wanted`, changed so that no setting differs from the others. Appends
// a line to `refused` for each explicit setting that is changed.
inline capi::TP_OptimizerConfigs MergeSettings(
    const std::string& device_type, const capi::TP_OptimizerConfigs& wanted,
    const std::vector<OtherSettings>& others,
    std::vector<std::string>& refused) {
  capi::TP_OptimizerConfigs merged = wanted;
  for (const auto& toggle : graph_internal::kToggleFields) {
    bool is_effective = toggle.IsEffective(wanted);
    const OtherSettings* reason = nullptr;
    for (const OtherSettings& other : others) {
      if (other.is_fixed) {
        is_effective = toggle.IsEffective(other.configs);
        reason = &other;
        break;
      }
      if (!is_effective && toggle.IsEffective(other.configs)) {
        is_effective = true;
        reason = &other;
      }
    }
    if (is_effective == toggle.IsEffective(wanted)) continue;
    merged.*toggle.field =
        is_effective ? toggle.EffectiveValue() : capi::TF_TriState_Default;
    if (wanted.*toggle.field == capi::TF_TriState_Default) continue;
    const bool is_on = wanted.*toggle.field == capi::TF_TriState_On;
    refused.push_back(
        std::string(toggle.name) + " = " + (is_on ? "kOn" : "kOff") + " for " +
        device_type + " is refused, because it differs for " +
        reason->device_type + " (" + reason->path +
        "), and TensorFlow crashes on a graph with nodes on both devices if "
        "their settings differ: remove the setting, or set the same in both "
        "plug-ins");
  }
  return merged;
}

// Returns the settings to register with TensorFlow.
inline capi::TP_OptimizerConfigs AgreeOnSettings(
    const std::string& device_type, const capi::TP_OptimizerConfigs& wanted) {
  registered_settings.checked = internal::LibraryCursor();
  std::vector<std::string> refused;
  registered_settings.configs = MergeSettings(
      device_type, wanted, AskOthers(registered_settings.checked), refused);
  registered_settings.is_registered = true;
  for (const std::string& line : refused) {
    internal::LogError("TF_InitGraph", line.c_str());
  }
  return registered_settings.configs;
}

// Logs an error for each library that was loaded since then and whose settings
// differ. Nothing can be done about them: TensorFlow has no function with which
// a plug-in could change its settings, or register a second time.
inline void WarnOfLaterSettings(const std::string& device_type) {
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  for (const OtherSettings& other : AskOthers(registered_settings.checked)) {
    for (const auto& toggle : graph_internal::kToggleFields) {
      if (toggle.IsEffective(other.configs) ==
          toggle.IsEffective(registered_settings.configs)) {
        continue;
      }
      internal::LogError(
          "create_func",
          ("the setting " + std::string(toggle.name) + " of " +
           other.device_type + " (" + other.path +
           "), which was loaded later, differs from that of " + device_type +
           ", and TensorFlow crashes on a graph with nodes on both "
           "devices: load that library first, or install both in "
           "site-packages/tensorflow-plugins")
              .c_str());
      break;
    }
  }
}

}  // namespace tfplug::passes_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_INTERNAL_SHARED_SETTINGS_H_
