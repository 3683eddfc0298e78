#include "worker/actor/thread_name.h"

#include <pthread.h>

#include <string>
#include <thread>

#include "gtest/gtest.h"

namespace troupe {
namespace {

std::string NameAfter(const std::string& asked) {
  std::string name;
  std::thread([&] {
    NameThisThread(asked);
    char kept[16];
    pthread_getname_np(pthread_self(), kept, sizeof(kept));
    name = kept;
  }).join();
  return name;
}

TEST(ThreadNameTest, ShortNamesStayLongOnesAreCut) {
  EXPECT_EQ(NameAfter("lane compute"), "lane compute");
  EXPECT_EQ(NameAfter("exactly fifteen"), "exactly fifteen");
  EXPECT_EQ(NameAfter("a name that is too long"), "a name that is ");
}

}  // namespace
}  // namespace troupe
