// Placing parameters and buffers in their arenas, and their values at the start.
#include "core/plugin/layout.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>

#include "core/base/digest.h"
#include "core/base/error.h"
#include "core/base/philox.h"

namespace trireme::plugin {
namespace {

constexpr std::uint64_t granule = 64 / sizeof(float);  // elements of 64 B

// Places `item` behind `end`, which moves.
template <class Item>
void put(Item& item, std::uint64_t& end) {
  end = round_up(end, granule);
  item.range = {end, end + static_cast<std::uint64_t>(item.shape.elements())};
  end = item.range.end;
}

template <class Item>
void check(const std::vector<Item>& items, const char* what) {
  std::set<std::string> names;
  for (const auto& item : items) {
    if (item.name.empty()) fail(ExitCode::internal, "a {} has no name", what);
    if (!names.insert(item.name).second) fail(ExitCode::internal, "{} '{}' is declared twice", what, item.name);
    if (item.shape.elements() == 0) {
      fail(ExitCode::internal, "{} '{}' has no elements: its shape is {}", what, item.name, item.shape.text());
    }
  }
}

// Number i of a normal distribution by Box and Muller from numbers 2i and 2i + 1 of the stream.
double normal(const RandomKey& key, std::uint64_t i) {
  const double u = to_uniform(random_bits(key, 2 * i)), v = to_uniform(random_bits(key, 2 * i + 1));
  return std::sqrt(-2 * std::log1p(-u)) * std::cos(2 * std::numbers::pi * v);
}

void fill(std::uint64_t seed, const Parameter& parameter, std::span<float> values) {
  const double a = parameter.a, b = parameter.b;
  if (parameter.init == Init::zeros || parameter.init == Init::constant) {
    std::fill(values.begin(), values.end(), parameter.init == Init::zeros ? 0.0f : static_cast<float>(a));
    return;
  }
  const RandomKey key = random_key(seed, Purpose::parameter, xxh3(bytes_of(parameter.name)), 0, 0);
  for (std::uint64_t i = 0; i < values.size(); ++i) {
    const double value = parameter.init == Init::uniform ? a + (b - a) * double{to_uniform(random_bits(key, i))}
                                                         : a + b * normal(key, i);
    values[i] = static_cast<float>(value);
  }
}

}  // namespace

void Layout::place() {
  check(parameters, "parameter");
  check(buffers, "buffer");
  std::uint64_t end = 0;
  for (auto& parameter : parameters) {
    if (parameter.decay) put(parameter, end);
  }
  end = decayed_elements = round_up(end, tile_elements);
  for (auto& parameter : parameters) {
    if (!parameter.decay) put(parameter, end);
  }
  parameter_elements = round_up(end, tile_elements);

  end = 0;
  for (auto& buffer : buffers) {
    if (buffer.reduce == Reduce::mean) put(buffer, end);
  }
  end = mean_elements = round_up(end, tile_elements);
  for (auto& buffer : buffers) {
    if (buffer.reduce == Reduce::max) put(buffer, end);
  }
  buffer_elements = round_up(end, tile_elements);
}

void Layout::initialise(std::uint64_t seed, std::span<float> parameter_arena, std::span<float> buffer_arena) const {
  if (parameter_arena.size() != parameter_elements || buffer_arena.size() != buffer_elements) {
    fail(ExitCode::internal, "initialise: arenas of {} and {} elements given, {} and {} wanted", parameter_arena.size(),
         buffer_arena.size(), parameter_elements, buffer_elements);
  }
  std::fill(parameter_arena.begin(), parameter_arena.end(), 0.0f);
  std::fill(buffer_arena.begin(), buffer_arena.end(), 0.0f);
  for (const auto& parameter : parameters) {
    fill(seed, parameter, parameter_arena.subspan(parameter.range.begin, parameter.range.size()));
  }
  for (const auto& buffer : buffers) {
    const auto values = buffer_arena.subspan(buffer.range.begin, buffer.range.size());
    std::fill(values.begin(), values.end(), static_cast<float>(buffer.initial));
  }
}

}  // namespace trireme::plugin
