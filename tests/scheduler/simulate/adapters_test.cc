#include "scheduler/simulate/adapters.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/proto/plan/made_roles.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

WorkerDescription Uses(const std::vector<std::string>& nics, double rate) {
  WorkerDescription worker;
  worker.mutable_network()->mutable_rate()->set_bytes_per_second(rate);
  for (const std::string& name : nics) {
    Nic& nic = *worker.add_nics();
    nic.set_name(name);
    nic.mutable_link()->mutable_rate()->set_bytes_per_second(rate);
  }
  return worker;
}

TEST(AdaptersOf, AreThoseThatAreShared) {
  const Adapters adapters = AdaptersOf(
      {Uses({"a"}, 8), Uses({"a"}, 8), Uses({"a"}, 9)}, {0, 0, 1}, 1);
  EXPECT_THAT(adapters.rates, ElementsAre(8));
  EXPECT_THAT(adapters.of_rank,
              ElementsAre(ElementsAre(0), ElementsAre(0), IsEmpty()));
}

TEST(AdaptersOf, ARankMayHaveSeveral) {
  const Adapters adapters = AdaptersOf({Uses({"a", "b"}, 4)}, {0}, 2);
  EXPECT_THAT(adapters.rates, ElementsAre(8, 8));
  EXPECT_THAT(adapters.of_rank, ElementsAre(ElementsAre(0, 1)));
}

TEST(AdaptersOf, WhoSaysNothingSharesOneOfTheHost) {
  const WorkerDescription silent;
  const Adapters adapters =
      AdaptersOf({silent, silent, silent, Uses({}, 5)}, {0, 0, 1, 1}, 1);
  EXPECT_THAT(adapters.rates, ElementsAre(1.1e9));
  EXPECT_THAT(adapters.of_rank, ElementsAre(ElementsAre(0), ElementsAre(0),
                                            IsEmpty(), IsEmpty()));
  EXPECT_THAT(AdaptersOf({Uses({}, 5), Uses({}, 5)}, {0, 0}, 1).of_rank,
              IsEmpty());
}

// One rank of a class takes the time of all that are on its adapter.
TEST(UsesOf, AClassCountsForAllOfIt) {
  const Plan plan = PlanOfPlaces(4);
  const Adapters adapters = {.rates = {10, 10},
                             .of_rank = {{0}, {0}, {1}, {1}}};
  RankTraits traits;
  traits.ranks = {0, 1, 2, 3};
  const AdapterUses each = UsesOf(adapters, RankClasses(plan, traits));
  EXPECT_EQ(each.adapters, 2);
  EXPECT_EQ(each.of_rank[3].front().ns_per_byte, 0.1e9);
}

}  // namespace
}  // namespace troupe
