#include "worker/collective/key_value_store.h"

#include <memory>
#include <string>
#include <thread>

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(InMemoryStoreTest, ReturnsWhatWasSet) {
  InMemoryStore store;
  ASSERT_TRUE(store.Set("a", std::string("x\0y", 3)).ok());
  EXPECT_EQ(*store.Get("a", absl::ZeroDuration()), std::string("x\0y", 3));
  EXPECT_EQ(*store.Get("a", absl::Seconds(9)), std::string("x\0y", 3));
}

TEST(InMemoryStoreTest, SharesWhatTheFirstMade) {
  InMemoryStore store;
  const auto first = store.Share("a", [] { return std::make_shared<int>(1); });
  const auto second = store.Share("a", [] { return std::make_shared<int>(2); });
  const auto other = store.Share("b", [] { return std::make_shared<int>(3); });
  ASSERT_TRUE(first.ok() && second.ok() && other.ok());
  EXPECT_EQ(*first, *second);
  EXPECT_NE(*first, *other);
  store.Abort(absl::CancelledError("enough"));
  EXPECT_EQ(store.Share("a", [] { return std::make_shared<int>(4); }).status(),
            absl::CancelledError("enough"));
}

TEST(InMemoryStoreTest, OfThoseThatWantAKeyTheFirstHasIt) {
  InMemoryStore store(/*bytes_max=*/16);
  const auto lost = store.SetFirst("l/0", "a", "l").status();
  EXPECT_TRUE(absl::IsDataLoss(lost)) << lost;
  ASSERT_TRUE(store.Set("l", "x").ok());
  EXPECT_EQ(*store.SetFirst("l/0", "a", "l"), "a");
  EXPECT_EQ(*store.SetFirst("l/0", "b", "l"), "a");
  EXPECT_EQ(*store.SetFirst("l/1", "b", "l/0"), "b");
  EXPECT_TRUE(absl::IsResourceExhausted(
      store.SetFirst("l/2", "too long", "l/1").status()));
  ASSERT_TRUE(store.Erase("l/").ok());
  EXPECT_EQ(*store.SetFirst("m", "c", "l"), "c");
  EXPECT_EQ(*store.SetFirst("m", "d", "l/1"), "c")
      << "it was set, whatever was erased since";
  EXPECT_TRUE(absl::IsDataLoss(store.SetFirst("l/2", "c", "l/1").status()));
  EXPECT_EQ(*store.SetFirst("l/9", "longer", "l"), "longer");
  store.Abort(absl::CancelledError("enough"));
  EXPECT_EQ(store.SetFirst("l/3", "d", "l").status(),
            absl::CancelledError("enough"));
}

TEST(InMemoryStoreTest, GetWaits) {
  InMemoryStore store;
  std::thread getter([&] {
    const auto value = store.Get("later", absl::Seconds(100));
    ASSERT_TRUE(value.ok()) << value.status();
    EXPECT_EQ(*value, "here");
  });
  ASSERT_TRUE(store.Set("later", "here").ok());
  getter.join();
}

TEST(InMemoryStoreTest, GetNamesTheKeyThatDidNotCome) {
  InMemoryStore store;
  const absl::Status status = store.Get("k", absl::Milliseconds(3)).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status));
  EXPECT_EQ(status.message(), "rendezvous key k was not set within 3ms");
}

TEST(InMemoryStoreTest, AKeyIsSetOnce) {
  InMemoryStore store;
  ASSERT_TRUE(store.Set("k", "1").ok());
  EXPECT_TRUE(store.Set("k", "1").ok());
  EXPECT_TRUE(absl::IsAlreadyExists(store.Set("k", "2")));
  EXPECT_EQ(*store.Get("k", absl::ZeroDuration()), "1");
}

TEST(InMemoryStoreTest, IsBounded) {
  InMemoryStore store(/*bytes_max=*/10);
  ASSERT_TRUE(store.Set("12", "345").ok());
  const absl::Status status = store.Set("67", "8901");
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_EQ(status.message(),
            "rendezvous store: 67 needs 6 bytes, 5 of 10 are left");
  EXPECT_TRUE(store.Set("67", "890").ok());
}

TEST(InMemoryStoreTest, AbortEndsWaitsAndAllThatFollows) {
  InMemoryStore store;
  ASSERT_TRUE(store.Set("k", "1").ok());
  std::thread getter([&] {
    EXPECT_TRUE(absl::IsCancelled(
        store.Get("never", absl::InfiniteDuration()).status()));
  });
  store.Abort(absl::CancelledError("the job was cancelled"));
  store.Abort(absl::InternalError("too late"));
  getter.join();
  EXPECT_TRUE(absl::IsCancelled(store.Set("x", "1")));
  EXPECT_TRUE(absl::IsCancelled(store.Get("k", absl::ZeroDuration()).status()));
}

}  // namespace
}  // namespace troupe
