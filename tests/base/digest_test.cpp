// SHA-256 against FIPS 180-4's examples and XXH3-64 against xxHash's own.
#include "core/base/digest.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/base/file.h"
#include "tests/base/folder.h"

namespace trireme {
namespace {

std::string sha256(std::string_view text) {
  Sha256 digest;
  digest.add(std::as_bytes(std::span(text)));
  return digest.hex();
}

TEST(Sha256, PublishedVectors) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256(std::string(1'000'000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PiecesDontMatter) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += static_cast<char>(i * 7);
  for (std::size_t length = 0; length <= 200; ++length) {  // over every position of the padding
    const std::string part = text.substr(0, length);
    const std::string whole = sha256(part);
    for (const std::size_t cut : {std::size_t{1}, std::size_t{55}, std::size_t{64}, std::size_t{65}}) {
      if (cut > length) continue;
      Sha256 digest;
      digest.add(std::as_bytes(std::span(part.data(), cut)));
      digest.add({});
      digest.add(std::as_bytes(std::span(part.data() + cut, length - cut)));
      ASSERT_EQ(digest.hex(), whole) << "length " << length << ", cut at " << cut;
    }
  }
  EXPECT_NE(sha256(std::string(55, 'a')), sha256(std::string(56, 'a')));
}

// XXH3-64 with seed 0 of nothing and of "abc", as other programs print them.
TEST(Xxh3, KnownValues) {
  EXPECT_EQ(xxh3({}), 0x2D06800538D394C2u);
  EXPECT_EQ(xxh3(bytes_of(std::string_view("abc"))), 0x78af5f94892f3950u);
}

TEST(Xxh3, AFileLikeItsBytes) {
  const Folder folder;
  std::string content(3'000'001, '\0');
  for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i * i % 251);
  replace_file(folder / "large", content);
  EXPECT_EQ(xxh3_of_file(folder / "large"), fmt::format("{:016x}", xxh3(bytes_of(content))));
  replace_file(folder / "empty", "");
  EXPECT_EQ(xxh3_of_file(folder / "empty"), "2d06800538d394c2");
  EXPECT_THROW((void)xxh3_of_file(folder / "missing"), Error);
}

}  // namespace
}  // namespace trireme
