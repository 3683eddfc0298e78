#include "worker/collective/shared_memory/segment.h"

#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <utility>

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(SharedSegment, IsSharedByThoseWhoOpenIt) {
  auto made = SharedSegment::Create(10'000);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->bytes(), 10'000u);
  EXPECT_TRUE(std::all_of(made->data(), made->data() + made->bytes(),
                          [](char byte) { return byte == 0; }));
  auto opened = SharedSegment::Open(made->address());
  ASSERT_TRUE(opened.ok()) << opened.status();
  ASSERT_EQ(opened->bytes(), 10'000u);
  EXPECT_NE(opened->data(), made->data());
  made->data()[9'999] = 'x';
  EXPECT_EQ(opened->data()[9'999], 'x');
}

TEST(SharedSegment, StaysWithWhoHasItWhenItsMakerIsGone) {
  auto made = SharedSegment::Create(4096);
  ASSERT_TRUE(made.ok());
  const std::string address = made->address();
  auto opened = SharedSegment::Open(address);
  ASSERT_TRUE(opened.ok());
  made->data()[0] = 'x';
  made->Close();
  EXPECT_FALSE(SharedSegment::Open(address).ok());
  { const SharedSegment gone = *std::move(made); }
  EXPECT_EQ(opened->data()[0], 'x');
}

TEST(SharedSegment, AnotherFileIsNone) {
  auto made = SharedSegment::Create(4096);
  ASSERT_TRUE(made.ok());
  std::string address = made->address();
  address.back() = address.back() == '0' ? '1' : '0';  // of the nonce
  EXPECT_NE(
      SharedSegment::Open(address).status().message().find("another file"),
      std::string::npos);
  for (const char* wrong : {"", "1 2 3", "x 1 2 3"}) {
    EXPECT_NE(SharedSegment::Open(wrong).status().message().find("no address"),
              std::string::npos);
  }
}

TEST(SharedSegment, SaysThatItCannotBeReserved) {
  signal(SIGXFSZ, SIG_IGN);
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 4096;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status status = SharedSegment::Create(10'000).status();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_NE(status.message().find("cannot reserve 10000 bytes"),
            std::string::npos)
      << status;
}

}  // namespace
}  // namespace troupe
