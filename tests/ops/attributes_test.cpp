// Registry and attributes: what they refuse, and in which words.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/base/error.h"
#include "core/ops/op.h"

namespace trireme::ops {
namespace {

using ::testing::HasSubstr;

// The text of the error that body throws; empty where it throws none.
template <class Body>
std::string error_of(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::internal);
    return error.what();
  }
  return {};
}

Attributes attributes_of(std::string_view op) { return Registry::get()[Registry::get().find(op, 1)].attributes; }

TEST(Registry, FindsEveryOpUnderItsName) {
  const auto& registry = Registry::get();
  ASSERT_GE(registry.all().size(), 15u);
  for (std::uint32_t id = 0; id < registry.all().size(); ++id) {
    EXPECT_EQ(registry.find(registry[id].name, registry[id].version), id);
    EXPECT_FALSE(registry[id].cases().empty()) << registry[id].name << " has no test case";
  }
}

TEST(Registry, NamesTheNearestOpForAnUnknownOne) {
  EXPECT_EQ(error_of([] { (void)Registry::get().find("conv2", 1); }), "unknown op 'conv2': did you mean 'conv2d'?");
  EXPECT_THAT(error_of([] { (void)Registry::get().find("attention", 1); }),
              AllOf(HasSubstr("unknown op 'attention'"), HasSubstr("linear"), HasSubstr("softmax_cross_entropy")));
}

TEST(Registry, NamesBothVersions) {
  EXPECT_THAT(error_of([] { (void)Registry::get().find("linear", 7); }),
              AllOf(HasSubstr("op 'linear'"), HasSubstr("version 7"), HasSubstr("version 1")));
}

TEST(Attributes, KeepWhatIsSet) {
  Attributes attributes = attributes_of("conv2d");
  EXPECT_EQ(attributes.integers("stride")[0], 1);
  const std::int64_t stride[] = {2, 3};
  attributes.set("stride", stride);
  attributes.set("relu", 1);
  EXPECT_EQ(attributes.integers("stride")[0], 2);
  EXPECT_EQ(attributes.integers("stride")[1], 3);
  EXPECT_EQ(attributes.integers("stride")[2], 0);
  EXPECT_TRUE(attributes.flag("relu"));
  EXPECT_EQ(attributes_of("dropout").number("p"), 0.5);
}

TEST(Attributes, RefuseUnknownNamesAndWrongKinds) {
  Attributes attributes = attributes_of("conv2d");
  EXPECT_EQ(error_of([&] { attributes.set("strides", 2); }),
            "conv2d: no attribute 'strides'; it has stride, padding, relu");
  EXPECT_EQ(error_of([&] { attributes.set("stride", 2); }),
            "conv2d: attribute 'stride' takes a list of integers, not 2");
  const std::int64_t pair[] = {1, 1};
  EXPECT_EQ(error_of([&] { attributes.set("relu", pair); }),
            "conv2d: attribute 'relu' takes a number, not a list of 2 integers");
  for (const double number : {0.5, 1e300, -1e16, std::nan("")}) {
    attributes.set("relu", number);
    EXPECT_THAT(error_of([&] { (void)attributes.flag("relu"); }), HasSubstr("conv2d: attribute 'relu' = "));
  }
  attributes.set("relu", -9007199254740992.0);
  EXPECT_EQ(attributes.integer("relu"), -(std::int64_t{1} << 53));
  const std::int64_t nine[9] = {};
  EXPECT_EQ(error_of([&] { attributes.set("padding", nine); }),
            "conv2d: attribute 'padding' takes at most 8 integers, not 9");
}

}  // namespace
}  // namespace trireme::ops
