#include "worker/service/own_address.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::HasSubstr;

TEST(OwnAddress, LoopbackIsOne) {
  EXPECT_THAT(OwnAddresses(), Contains(HasSubstr("127.0.0.1 (")));
  EXPECT_TRUE(CheckOwnAddress("127.0.0.1").ok());
  EXPECT_TRUE(CheckOwnAddress("localhost").ok());
}

// Set aside for documents (RFC 5737), so that no host has it.
TEST(OwnAddress, AnothersIsRefusedWithThoseThatThereAre) {
  const absl::Status status = CheckOwnAddress("198.51.100.7");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("--address: 198.51.100.7 is no address of this host"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("127.0.0.1 ("));
}

TEST(OwnAddress, EveryAddressIsNone) {
  for (const char* every : {"0.0.0.0", "::"}) {
    EXPECT_THAT(std::string(CheckOwnAddress(every).message()),
                HasSubstr(std::string(every) + " is no address of this host"));
  }
}

// ".invalid" is no domain (RFC 2606); without a resolver that is not known.
TEST(OwnAddress, ANameThatIsNoneIsRefused) {
  const absl::Status status = CheckOwnAddress("gpu-7.invalid");
  EXPECT_THAT(status.code(), AnyOf(absl::StatusCode::kInvalidArgument,
                                   absl::StatusCode::kUnavailable));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("--address: gpu-7.invalid"));
}

}  // namespace
}  // namespace troupe
