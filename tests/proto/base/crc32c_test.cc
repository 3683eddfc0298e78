#include "proto/base/crc32c.h"

#include <string>

#include "gtest/gtest.h"

namespace troupe {
namespace {

// RFC 3720, appendix B.4.
TEST(Crc32c, KnownAnswers) {
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(Crc32c(""), 0u);
}

TEST(Crc32c, ExtendsInAnyPieces) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += static_cast<char>(i * 7);
  for (const size_t cut : {0, 1, 7, 8, 9, 500, 1000}) {
    const absl::string_view view(text);
    EXPECT_EQ(ExtendCrc32c(Crc32c(view.substr(0, cut)), view.substr(cut)),
              Crc32c(text));
  }
}

}  // namespace
}  // namespace troupe
