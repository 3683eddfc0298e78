#include "scheduler/cluster/rendezvous.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(Rendezvous, AnswersNowOrWhenTheKeyComes) {
  Rendezvous store({});
  EXPECT_EQ(*store.Get(1, "k"), nullptr);
  EXPECT_EQ(*store.Get(2, "k"), nullptr);
  EXPECT_EQ(*store.Get(2, "other"), nullptr);
  EXPECT_EQ(*store.Set("k", "v"), (std::vector<int>{1, 2}));
  ASSERT_NE(*store.Get(3, "k"), nullptr);
  EXPECT_EQ(**store.Get(3, "k"), "v");
  EXPECT_TRUE(store.Set("k", "w")->empty()) << "nobody is told twice";
  EXPECT_EQ(**store.Get(3, "k"), "w");
}

TEST(Rendezvous, OfThoseThatWantAKeyTheFirstHasIt) {
  Rendezvous store({});
  EXPECT_TRUE(absl::IsNotFound(store.SetFirst("l/0", "a", "l").status()));
  ASSERT_TRUE(store.Set("l", "open").ok());
  EXPECT_EQ(*store.Get(4, "l/0"), nullptr);
  const auto first = store.SetFirst("l/0", "a", "l");
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->value, "a");
  EXPECT_EQ(first->waited, std::vector<int>{4});
  const auto second = store.SetFirst("l/0", "b", "l");
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->value, "a");
  EXPECT_TRUE(second->waited.empty());
  ASSERT_TRUE(store.SetFirst("l/1", "b", "l/0").ok());
  // A list that goes on behind this one may outlive it: a late member that
  // wants its first place is told whose it is.
  ASSERT_TRUE(store.SetFirst("m/0", "c", "l/1").ok());
  store.Erase("l/");
  const auto late = store.SetFirst("m/0", "d", "l/1");
  ASSERT_TRUE(late.ok()) << late.status();
  EXPECT_EQ(late->value, "c");
  EXPECT_EQ(*store.Get(1, "l/1"), nullptr);
  EXPECT_NE(*store.Get(1, "l"), nullptr);
  EXPECT_TRUE(absl::IsNotFound(store.SetFirst("l/2", "c", "l/1").status()));
}

TEST(Rendezvous, IsBounded) {
  Limits limits;
  limits.store_keys_max = 3;
  limits.store_bytes_max = 100;
  limits.store_value_bytes_max = 60;
  Rendezvous store(limits);
  EXPECT_TRUE(
      absl::IsResourceExhausted(store.Set("k", std::string(60, 'x')).status()));
  ASSERT_TRUE(store.Set("a", std::string(50, 'x')).ok());
  EXPECT_TRUE(
      absl::IsResourceExhausted(store.Set("b", std::string(50, 'x')).status()));
  // A value that is replaced makes room.
  ASSERT_TRUE(store.Set("a", "x").ok());
  ASSERT_TRUE(store.Set("b", std::string(50, 'x')).ok());
  ASSERT_TRUE(store.Set("c", "").ok());
  EXPECT_TRUE(absl::IsResourceExhausted(store.Set("d", "").status()));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(store.Get(0, "later").ok());
  EXPECT_TRUE(absl::IsResourceExhausted(store.Get(0, "later").status()));
}

}  // namespace
}  // namespace troupe
