// The keys of [model]: what a plugin asks for, checked against what the job gives.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/job.h"
#include "core/plugin/model.h"
#include "trireme/abi.h"

namespace trireme::plugin {

[[nodiscard]] inline std::string_view view(trireme_string text) { return {text.data, text.size}; }

// Every getter declares its key and returns the job's value or the fallback. A wrong value is Error(usage) with its
// place in the job; a fallback outside of its own range is the plugin's fault, Error(internal).
class Keys {
 public:
  explicit Keys(const std::map<std::string, JobValue>& given) : given_(given) {}

  [[nodiscard]] std::int64_t integer(const trireme_key& key, std::int64_t fallback);
  [[nodiscard]] double number(const trireme_key& key, double fallback);
  [[nodiscard]] bool boolean(const trireme_key& key, bool fallback);
  // The view lives as long as this object.
  [[nodiscard]] std::string_view text(const trireme_key& key, std::string_view fallback,
                                      std::span<const trireme_string> choices);

  // Refuses keys of the job that nobody asked for, with the nearest one that there is.
  void refuse_unknown() const;
  [[nodiscard]] std::span<const ModelKey> declared() const { return declared_; }

 private:
  // The job's value, or null; adds the key to the declared ones.
  const JobValue* declare(const trireme_key& key, const char* type, std::string range, std::string fallback);

  std::map<std::string, JobValue> given_;
  std::vector<ModelKey> declared_;
  std::deque<std::string> texts_;
};

}  // namespace trireme::plugin
