// Shapes: counts, derived shapes, and what is refused.
#include "core/base/shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "core/base/error.h"

namespace trireme {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(Shape, ExtentsAndElements) {
  const Shape shape{128, 28, 27};
  EXPECT_EQ(shape.rank(), 3);
  EXPECT_EQ(shape[0], 128);
  EXPECT_EQ(shape[-1], 27);
  EXPECT_EQ(shape.elements(), 128 * 28 * 27);
  EXPECT_EQ(shape.elements(1, 3), 28 * 27);
  EXPECT_EQ(shape.elements(1, 1), 1);
  EXPECT_EQ(shape.text(), "(128, 28, 27)");
  EXPECT_EQ(Shape{}.elements(), 1);
  EXPECT_EQ(Shape{}.text(), "()");
  EXPECT_EQ(Shape{5}.text(), "(5,)");
}

TEST(Shape, DerivedShapes) {
  const Shape shape{4, 3, 2};
  EXPECT_EQ(shape.with_rows(7), (Shape{7, 3, 2}));
  EXPECT_EQ(shape.with_rows(7).elements(), 42);
  EXPECT_EQ(shape.batched(9), (Shape{9, 4, 3, 2}));
  EXPECT_EQ(Shape{}.batched(9), Shape{9});
  EXPECT_EQ(shape.without_first(), (Shape{3, 2}));
  EXPECT_FALSE(shape == (Shape{4, 3}));
  EXPECT_FALSE((Shape{2, 3}) == (Shape{3, 2}));
}

TEST(Shape, ZeroExtents) {
  const std::int64_t large = std::int64_t{1} << 40;
  EXPECT_EQ((Shape{large, large, 0}).elements(), 0);  // the factors alone would overflow
  EXPECT_EQ((Shape{0, 3}).elements(1, 2), 3);
}

TEST(Shape, Refusals) {
  const std::int64_t large = std::int64_t{1} << 40;
  EXPECT_THAT(([&] { Shape{large, large}; }), ThrowsMessage<Error>(HasSubstr("more than 2^58")));
  EXPECT_THAT(([] { Shape{2, -1}; }), ThrowsMessage<Error>(HasSubstr("(2, -1): an extent is negative")));
  EXPECT_THAT(([] { Shape{1, 2, 3, 4, 5, 6, 7, 8, 9}; }), ThrowsMessage<Error>(HasSubstr("9 dimensions")));
  EXPECT_THAT(([] { (void)(Shape{2, 3})[2]; }), ThrowsMessage<Error>(HasSubstr("dimension 2 of shape (2, 3)")));
  EXPECT_THAT(([] { (void)(Shape{2, 3})[-3]; }), ThrowsMessage<Error>(HasSubstr("dimension -3")));
  EXPECT_THAT(([] { (void)(Shape{2, 3}).elements(1, 3); }), ThrowsMessage<Error>(HasSubstr("[1, 3)")));
  EXPECT_THAT(([] { (void)Shape{}.with_rows(3); }), ThrowsMessage<Error>(HasSubstr("a scalar has no rows")));
  EXPECT_THAT(([] { (void)Shape{}.without_first(); }), ThrowsMessage<Error>(HasSubstr("a scalar")));
  EXPECT_THAT(([] { (void)(Shape{1, 1, 1, 1, 1, 1, 1, 1}).batched(2); }), ThrowsMessage<Error>(HasSubstr("no room")));
  const std::int64_t half = std::int64_t{1} << 29;
  EXPECT_EQ((Shape{half, half}).elements(), std::int64_t{1} << 58);
  EXPECT_THAT(([&] { Shape{half, half + 1}; }), ThrowsMessage<Error>(HasSubstr("more than 2^58")));
}

}  // namespace
}  // namespace trireme
