// Shared by the tests of io/hdf5, io/dataset and io/feed: rows as values, and errors by their parts.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "io/hdf5/hdf5.h"

namespace trireme::test {

template <class T>
std::vector<T> values_of(std::span<const std::byte> bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

template <class T>
std::vector<T> read_rows(const io::Hdf5File& file, const std::string& dataset, std::int64_t first, std::int64_t count,
                         Dtype as) {
  const Shape shape = file.info(dataset).shape;
  const std::int64_t row = shape.rank() == 0 ? 1 : shape.elements(1, shape.rank());
  std::vector<std::byte> bytes(static_cast<std::size_t>(row * count) * size_of(as));
  file.read(dataset, first, count, as, bytes);
  return values_of<T>(bytes);
}

// Runs `body`, which must throw Error with this code and all these parts in its text.
template <class Body>
void expect_error(ExitCode code, const std::vector<std::string>& parts, const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    for (const std::string& part : parts) EXPECT_THAT(error.what(), testing::HasSubstr(part));
    return;
  }
  FAIL() << "no error; expected one with: " << testing::PrintToString(parts);
}

}  // namespace trireme::test
