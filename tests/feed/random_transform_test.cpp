// Random transforms: what they do, that position alone decides, that evaluation leaves them out.
#include <algorithm>
#include <map>
#include <numeric>
#include <thread>

#include "io/feed/transform.h"
#include "tests/hdf5/values.h"

namespace trireme::io {
namespace {

using test::values_of;

const std::vector<Field> kept = {{"image", Shape({4, 5}), Dtype::u8}, {"rgb", Shape({3, 4, 3}), Dtype::f32}};

template <class T>
std::vector<T> applied(const Transforms& transforms, std::size_t field, const std::vector<T>& values,
                       std::uint64_t position) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  transforms.apply(field, position, std::as_bytes(std::span(values)), bytes);
  return values_of<T>(bytes);
}

std::vector<std::uint8_t> picture() {
  std::vector<std::uint8_t> pixels(20);
  std::iota(pixels.begin(), pixels.end(), std::uint8_t{1});
  return pixels;
}

// The crop at (dy, dx) of the picture padded by `pad`, element by element.
template <class T>
std::vector<T> cropped(const std::vector<T>& from, int height, int width, int channels, int pad, int dy, int dx) {
  std::vector<T> to;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const int sy = y + dy - pad, sx = x + dx - pad;
      const bool inside = sy >= 0 && sy < height && sx >= 0 && sx < width;
      for (int c = 0; c < channels; ++c) {
        to.push_back(inside ? from[static_cast<std::size_t>((sy * width + sx) * channels + c)] : T{0});
      }
    }
  }
  return to;
}

template <class T>
std::vector<T> flipped(const std::vector<T>& from, int height, int width, int channels) {
  std::vector<T> to;
  for (int y = 0; y < height; ++y) {
    for (int x = width - 1; x >= 0; --x) {
      for (int c = 0; c < channels; ++c) to.push_back(from[static_cast<std::size_t>((y * width + x) * channels + c)]);
    }
  }
  return to;
}

TEST(RandomTransform, FlipMirrorsRowsHalfOfTheTime) {
  const std::vector<std::string> lines = {"rgb: scale 1", "image: flip", "rgb: flip"};
  const Transforms transforms(lines, kept, 9, true);
  std::vector<float> rgb(36);
  std::iota(rgb.begin(), rgb.end(), 0.0f);
  int flips = 0, together = 0;
  std::vector<int> first;
  for (std::uint64_t p = 0; p < 4000; ++p) {
    const auto got = applied(transforms, 0, picture(), p);
    const bool mirrored = got == flipped(picture(), 4, 5, 1);
    ASSERT_TRUE(mirrored || got == picture());
    const auto channels = applied(transforms, 1, rgb, p);
    const bool other = channels == flipped(rgb, 3, 4, 3);
    ASSERT_TRUE(other || channels == rgb);
    flips += mirrored;
    together += mirrored == other;
    if (p < 8) first.push_back(mirrored);
  }
  EXPECT_NEAR(flips, 2000, 200);                                 // 6 standard deviations are 190
  EXPECT_NEAR(together, 2000, 200);                              // lines draw for themselves
  EXPECT_EQ(first, (std::vector<int>{1, 0, 0, 1, 1, 1, 1, 1}));  // from an independent program
}

TEST(RandomTransform, PadCropTakesEveryPlaceOfThePaddedPicture) {
  const std::vector<std::string> lines = {"image: pad-crop 2"};
  const Transforms transforms(lines, kept, 9, true);
  std::map<std::pair<int, int>, int> places;
  for (std::uint64_t p = 0; p < 5000; ++p) {
    const auto got = applied(transforms, 0, picture(), p);
    int matches = 0;
    for (int dy = 0; dy <= 4; ++dy) {
      for (int dx = 0; dx <= 4; ++dx) {
        if (got != cropped(picture(), 4, 5, 1, 2, dy, dx)) continue;
        ++places[{dy, dx}];
        ++matches;
      }
    }
    ASSERT_EQ(matches, 1) << p;
  }
  EXPECT_EQ(places.size(), 25u);
  for (const auto& [place, count] : places) EXPECT_NEAR(count, 200, 84);  // 6 standard deviations
  // From an independent program.
  const std::vector<std::pair<int, int>> expected = {{2, 1}, {4, 1}, {2, 4}, {0, 3}, {3, 4}, {1, 4}};
  for (std::size_t p = 0; p < expected.size(); ++p) {
    EXPECT_EQ(applied(transforms, 0, picture(), p),
              cropped(picture(), 4, 5, 1, 2, expected[p].first, expected[p].second))
        << p;
  }
}

TEST(RandomTransform, PadBeyondThePictureAndChannels) {
  const std::vector<std::string> lines = {"image: pad-crop 9", "rgb: pad-crop 1"};
  const Transforms transforms(lines, kept, 9, true);
  std::vector<float> rgb(36);
  std::iota(rgb.begin(), rgb.end(), 1.0f);
  int empty = 0;
  for (std::uint64_t p = 0; p < 300; ++p) {
    const auto far = applied(transforms, 0, picture(), p);
    bool found = false;
    for (int dy = 0; dy <= 18 && !found; ++dy) {
      for (int dx = 0; dx <= 18 && !found; ++dx) found = far == cropped(picture(), 4, 5, 1, 9, dy, dx);
    }
    ASSERT_TRUE(found) << p;
    empty += std::all_of(far.begin(), far.end(), [](int v) { return v == 0; });
    const auto near = applied(transforms, 1, rgb, p);
    found = false;
    for (int dy = 0; dy <= 2; ++dy) {
      for (int dx = 0; dx <= 2; ++dx) found = found || near == cropped(rgb, 3, 4, 3, 1, dy, dx);
    }
    ASSERT_TRUE(found) << p;
  }
  EXPECT_GT(empty, 0);
}

TEST(RandomTransform, PositionAloneDecides) {
  const std::vector<std::string> lines = {"image: pad-crop 2", "image: flip"};
  const Transforms transforms(lines, kept, 9, true), again(lines, kept, 9, true), other(lines, kept, 10, true);
  std::vector<std::vector<std::uint8_t>> forward;
  for (std::uint64_t p = 0; p < 200; ++p) forward.push_back(applied(transforms, 0, picture(), p));
  int differences = 0;
  std::thread elsewhere([&] {
    for (std::uint64_t p = 200; p-- > 0;) {
      EXPECT_EQ(applied(again, 0, picture(), p), forward[p]);
      differences += applied(other, 0, picture(), p) != forward[p];
    }
  });
  elsewhere.join();
  EXPECT_GT(differences, 150);  // another seed: 49 of 50 differ on average
  // Distinct positions far apart: 2^32 does not wrap.
  int same = 0;
  for (std::uint64_t p = 0; p < 200; ++p)
    same += applied(transforms, 0, picture(), p + (std::uint64_t{1} << 32)) == forward[p];
  EXPECT_LT(same, 50);
}

TEST(RandomTransform, EvaluationLeavesThemOut) {
  const std::vector<std::string> lines = {"image: pad-crop 2", "image: flip", "image: scale 2"};
  const Transforms transforms(lines, kept, 9, false);
  const std::vector<std::uint8_t> pixels = picture();
  std::vector<std::byte> bytes(20 * sizeof(float));
  for (std::uint64_t p = 0; p < 20; ++p) {
    transforms.apply(0, p, std::as_bytes(std::span(pixels)), bytes);
    const auto got = values_of<float>(bytes);
    for (std::size_t i = 0; i < 20; ++i) EXPECT_EQ(got[i], 2.0f * static_cast<float>(i + 1));
  }
}

}  // namespace
}  // namespace trireme::io
