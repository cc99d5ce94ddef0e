// context.h: a model's link to the core. Model authors need Error alone.
#pragma once
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "abi.h"

// The SDK lies in an inline namespace, so that none of its symbols can meet one of the core's.
namespace trireme {
inline namespace sdk {

// What the SDK throws, and what a model may throw: the text is shown with the plugin's name, the run ends with
// exit code 70. Any other exception ends the run alike.
//
//   if (width % 8 != 0) throw Error("width " + std::to_string(width) + " is no multiple of 8");
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

namespace detail {

inline trireme_string to_c(std::string_view s) { return {s.data(), s.size()}; }
inline std::string_view from_c(trireme_string s) { return {s.data, s.size}; }

// Throws Error with the host's text unless the host was content.
inline void check(const trireme_host& host, trireme_status status) {
  if (status != TRIREME_OK) throw Error(std::string(from_c(host.last_error(host.core))));
}

// One per model: the host's table and, while the core calls the model, that call. Compute thread only.
class Context {
 public:
  Context(const trireme_host& host, std::span<const trireme_field> fields) : host_(&host) {
    for (const auto& field : fields) fields_.emplace_back(from_c(field.name));
  }
  [[nodiscard]] const trireme_host& host() const { return *host_; }
  [[nodiscard]] trireme_core* core() const { return host_->core; }
  [[nodiscard]] const trireme_call& call() const {
    if (call_ == nullptr) throw Error("a tensor was used outside of forward, loss, predict or step");
    return *call_;
  }
  void enter(const trireme_call* call) { call_ = call; }
  void check(trireme_status status) const { detail::check(*host_, status); }

  [[nodiscard]] std::size_t field(std::string_view name) const {
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      if (fields_[i] == name) return i;
    }
    std::string known;
    for (const auto& field : fields_) known += (known.empty() ? "'" : ", '") + field + "'";
    throw Error("no field named '" + std::string(name) + "' in [data] fields of the job; it has " +
                (known.empty() ? "none" : known));
  }
  // Resolved at the first use and kept.
  [[nodiscard]] trireme_op op(std::string_view name, std::uint32_t version = 1) {
    for (const auto& [known, id] : ops_) {
      if (known == name) return id;
    }
    trireme_op id{};
    check(host_->op(core(), to_c(name), version, &id));
    return ops_.emplace_back(std::string(name), id).second;
  }

 private:
  const trireme_host* host_;
  const trireme_call* call_ = nullptr;
  std::vector<std::string> fields_;
  std::vector<std::pair<std::string, trireme_op>> ops_;
};

}  // namespace detail
}  // namespace sdk
}  // namespace trireme
