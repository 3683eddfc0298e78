#include "scheduler/published_address.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

std::string Ada() { return "ada"; }

TEST(PublishedAddress, NamesTheHostWhereAllAddressesAreMeant) {
  EXPECT_EQ(PublishedAddress("0.0.0.0:4321", Ada), "ada:4321");
  EXPECT_EQ(PublishedAddress("[::]:4321", Ada), "ada:4321");
  EXPECT_EQ(PublishedAddress("https://0.0.0.0:1", Ada), "https://ada:1");
  EXPECT_EQ(PublishedAddress(":::4321", Ada), "ada:4321");
  EXPECT_EQ(PublishedAddress("http://0.0.0.0:80", Ada), "http://ada:80");
}

TEST(PublishedAddress, LeavesOthersAsTheyAre) {
  for (const char* address : {"127.0.0.1:1", "10.0.0.0:5", "[::1]:4",
                              "http://ada:7", "0.0.0.0", "host:0"}) {
    EXPECT_EQ(PublishedAddress(address, Ada), address);
  }
}

TEST(PublishedAddress, ThisHostHasOne) {
  EXPECT_NE(AddressOfThisHost(), "");
  EXPECT_NE(AddressOfThisHost(), "0.0.0.0");
}

}  // namespace
}  // namespace troupe
