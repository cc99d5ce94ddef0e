// config.h: the keys of [model] in a job. A model declares each by asking for it, in its constructor:
//
//   explicit Net(Config& c)
//       : width_(c.integer("width", 64, "channels of the first block", {1, 4096})),
//         drop_(c.number("dropout", 0.25, "probability", {0, 0.9})),
//         act_(c.text("activation", "relu", "between layers", {"relu", "none"})) {}
//
// A key that no constructor asked for, or a value outside of its range, ends the run with the line of the job file.
// `trireme plugin describe` lists them.
#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>

#include "context.h"

namespace trireme {
inline namespace sdk {

// Closed interval of permitted values.
struct Range {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
};

// Valid while the model is constructed.
class Config {
 public:
  Config(const trireme_host& host, trireme_config* config) : host_(&host), config_(config) {}

  [[nodiscard]] std::int64_t integer(std::string_view name, std::int64_t fallback, std::string_view help,
                                     Range range = {}) {
    std::int64_t value = 0;
    const trireme_key key = declare(name, help, range);
    detail::check(*host_, host_->config_integer(host_->core, config_, &key, fallback, &value));
    return value;
  }
  [[nodiscard]] double number(std::string_view name, double fallback, std::string_view help, Range range = {}) {
    double value = 0;
    const trireme_key key = declare(name, help, range);
    detail::check(*host_, host_->config_number(host_->core, config_, &key, fallback, &value));
    return value;
  }
  [[nodiscard]] bool boolean(std::string_view name, bool fallback, std::string_view help) {
    std::int32_t value = 0;
    const trireme_key key = declare(name, help, {});
    detail::check(*host_, host_->config_boolean(host_->core, config_, &key, fallback ? 1 : 0, &value));
    return value != 0;
  }
  // One of `choices`; any text where there are none.
  [[nodiscard]] std::string text(std::string_view name, std::string_view fallback, std::string_view help,
                                 std::initializer_list<std::string_view> choices = {}) {
    std::array<trireme_string, 32> known{};
    if (choices.size() > known.size()) throw Error("key '" + std::string(name) + "': more than 32 choices");
    std::size_t count = 0;
    for (const auto choice : choices) known[count++] = detail::to_c(choice);
    trireme_string value{};
    const trireme_key key = declare(name, help, {});
    detail::check(*host_,
                  host_->config_text(host_->core, config_, &key, detail::to_c(fallback), known.data(), count, &value));
    return std::string(detail::from_c(value));
  }

 private:
  static trireme_key declare(std::string_view name, std::string_view help, Range range) {
    return {detail::to_c(name), detail::to_c(help), range.low, range.high, 0, 0};
  }
  const trireme_host* host_;
  trireme_config* config_;
};

}  // namespace sdk
}  // namespace trireme
