#include "worker/collective/shared_memory/stream_copy.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(StreamCopy, CopiesEveryByteAndNoOther) {
  struct alignas(64) Line {
    char bytes[64];
  };
  std::string from(500, ' ');
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<char>('!' + i);
  for (const size_t offset : {0, 1, 16}) {  // of the source: any
    for (size_t bytes = 0; bytes <= 300; ++bytes) {
      std::vector<Line> lines(6, Line{});
      char* const to = lines[0].bytes;
      StreamCopy(to, from.data() + offset, bytes);
      EXPECT_EQ(std::string(to, bytes), from.substr(offset, bytes));
      EXPECT_EQ(to[bytes], '\0');
    }
  }
}

}  // namespace
}  // namespace troupe
