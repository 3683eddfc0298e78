#include "proto/plan/groups.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/mesh.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Mesh MeshOf(const std::vector<std::pair<std::string, int>>& axes) {
  Mesh mesh;
  for (const auto& [name, size] : axes) {
    Axis& axis = *mesh.add_axes();
    axis.set_name(name);
    axis.set_size(size);
  }
  return mesh;
}

struct SpanFields {
  std::string axis;
  int block = 0;
  std::vector<int> places;
  int stride = 0;
};
Group GroupOf(const std::vector<SpanFields>& spans) {
  Group group;
  group.set_name("test");
  for (const SpanFields& fields : spans) {
    Group::Span& span = *group.add_spans();
    span.set_axis(fields.axis);
    span.set_block(fields.block);
    span.mutable_places()->Assign(fields.places.begin(), fields.places.end());
    span.set_stride(fields.stride);
  }
  return group;
}

TEST(Groups, SpanWholeAxes) {
  const Mesh mesh = MeshOf({{"pipeline", 2}, {"data", 3}, {"tensor", 2}});
  const Group data = GroupOf({{"data"}});
  EXPECT_EQ(GroupSize(mesh, data), 3);
  EXPECT_EQ(GroupCount(mesh, data), 4);
  EXPECT_THAT(MembersOf(mesh, data, 3), ElementsAre(1, 3, 5));
  EXPECT_EQ(GroupNumber(mesh, data, 3), 1);
  EXPECT_EQ(GroupName(mesh, data, 11), "test-3");
  EXPECT_TRUE(IsAlong(data, "data"));
  EXPECT_TRUE(Spans(mesh, data, "data"));
  EXPECT_FALSE(Spans(mesh, data, "tensor"));
  EXPECT_THAT(MembersOf(mesh, GroupOf({{"pipeline"}, {"tensor"}}), 2),
              ElementsAre(2, 3, 8, 9));
  EXPECT_THAT(MembersOf(mesh, GroupOf({}), 7), ElementsAre(7));
}

TEST(Groups, SpanBlocksOfNeighbours) {
  const Mesh mesh = MeshOf({{"data", 2}, {"tensor", 6}});
  const Group threes = GroupOf({{"tensor", 3}});
  EXPECT_EQ(GroupSize(mesh, threes), 3);
  EXPECT_EQ(GroupCount(mesh, threes), 4);
  EXPECT_THAT(MembersOf(mesh, threes, 10), ElementsAre(9, 10, 11));
  EXPECT_EQ(GroupNumber(mesh, threes, 10), 3);
  EXPECT_THAT(MembersOf(mesh, GroupOf({{"data"}, {"tensor", 3}}), 10),
              ElementsAre(3, 4, 5, 9, 10, 11));
  EXPECT_EQ(SpansText(threes), "tensor by 3");
}

TEST(Groups, SpanSomePlaces) {
  const Mesh mesh = MeshOf({{"pipeline", 4}, {"data", 2}});
  const Group ends = GroupOf({{"pipeline", 0, {0, 3}}, {"data"}});
  EXPECT_EQ(GroupSize(mesh, ends), 4);
  EXPECT_EQ(GroupCount(mesh, ends), 1);
  EXPECT_THAT(MembersOf(mesh, ends, 7), ElementsAre(0, 1, 6, 7));
  EXPECT_EQ(GroupNumber(mesh, ends, 2), -1);
  EXPECT_THAT(MembersOf(mesh, ends, 2), IsEmpty());
  EXPECT_EQ(SpansText(ends), "pipeline 0,3 x data");
}

TEST(Groups, OfOneKindPartitionTheRanks) {
  const Mesh mesh = MeshOf({{"pipeline", 2}, {"data", 3}, {"tensor", 4}});
  for (const Group& group :
       {GroupOf({{"pipeline"}}), GroupOf({{"data"}}), GroupOf({{"tensor", 2}}),
        GroupOf({{"data"}, {"tensor", 2}}),
        GroupOf({{"pipeline"}, {"data"}, {"tensor"}})}) {
    std::map<int, std::vector<int>> by_number;
    for (int r = 0; r < MeshSize(mesh); ++r) {
      by_number[GroupNumber(mesh, group, r)].push_back(r);
    }
    ASSERT_EQ(static_cast<int>(by_number.size()), GroupCount(mesh, group));
    EXPECT_EQ(by_number.rbegin()->first, GroupCount(mesh, group) - 1);
    for (const auto& [number, ranks] : by_number) {
      EXPECT_EQ(static_cast<int>(ranks.size()), GroupSize(mesh, group));
      for (const int r : ranks) EXPECT_EQ(MembersOf(mesh, group, r), ranks);
    }
  }
}

TEST(Groups, SpanEachSoManiethPlace) {
  const Mesh mesh = MeshOf({{"data", 6}, {"tensor", 2}});
  const Group group = GroupOf({{.axis = "data", .stride = 2}});
  EXPECT_EQ(GroupSize(mesh, group), 3);
  EXPECT_EQ(GroupCount(mesh, group), 4);
  EXPECT_THAT(MembersOf(mesh, group, 4), ElementsAre(0, 4, 8));
  EXPECT_THAT(MembersOf(mesh, group, 7), ElementsAre(3, 7, 11));
  EXPECT_EQ(GroupNumber(mesh, group, 7), 3);
  EXPECT_EQ(PieceOf(mesh, group, 7).index, 1);
  EXPECT_EQ(PieceOf(mesh, group, 7).count, 3);
  EXPECT_FALSE(IsAlong(group, "data"));
  EXPECT_EQ(SpansText(group), "data every 2");
}

TEST(Groups, HaveACarrierEachOrOneForAll) {
  const Mesh mesh = MeshOf({{"data", 2}, {"tensor", 2}});
  Group group = GroupOf({{"tensor"}});
  EXPECT_EQ(CarrierOf(group, 1).backend(), "");
  group.add_carriers()->set_backend("nccl");
  EXPECT_EQ(CarrierOf(group, 1).backend(), "nccl");
  group.add_carriers()->set_backend("gloo");
  EXPECT_EQ(CarrierOf(group, 1).backend(), "gloo");
  EXPECT_TRUE(CheckGroup(mesh, group).ok());
  group.add_carriers();
  EXPECT_THAT(std::string(CheckGroup(mesh, group).message()),
              HasSubstr("has 3 carriers for 2 groups"));
}

TEST(Groups, ThatDoNotFitTheMeshAreFaults) {
  const Mesh mesh = MeshOf({{"data", 4}});
  const auto message = [&](const std::vector<SpanFields>& spans) {
    return std::string(CheckGroup(mesh, GroupOf(spans)).message());
  };
  EXPECT_EQ(message({{"data", 2}}), "");
  EXPECT_THAT(message({{"tensor"}}), HasSubstr("spans axis tensor"));
  EXPECT_THAT(message({{"data"}, {"data"}}), HasSubstr("twice"));
  EXPECT_THAT(message({{"data", 3}}), HasSubstr("blocks of 3 of the 4"));
  EXPECT_THAT(message({{"data", -1}}), HasSubstr("blocks of -1"));
  EXPECT_THAT(message({{.axis = "data", .stride = 3}}),
              HasSubstr("every 3 of the 4"));
  EXPECT_THAT(message({{.axis = "data", .block = 2, .stride = 2}}),
              HasSubstr("more than one of them"));
  EXPECT_THAT(message({{"data", 0, {1, 1}}}), HasSubstr("place 1 after 1"));
  EXPECT_THAT(message({{"data", 0, {4}}}), HasSubstr("place 4 after -1"));
}

TEST(PeerRank, IsElsewhereOnThePipelineOnly) {
  const Mesh mesh = MeshOf({{"pipeline", 3}, {"data", 2}, {"tensor", 2}});
  EXPECT_EQ(PeerRank(mesh, 6, 2), 10);
  EXPECT_EQ(PeerRank(mesh, 6, 0), 2);
}

// Of every rank, what is said of one: by its members, one after the other.
TEST(Groups, AreBoxesOfTheMesh) {
  const Mesh mesh = MeshOf({{"pipeline", 4}, {"data", 6}, {"tensor", 2}});
  const std::vector<Group> groups = {
      GroupOf({}),
      GroupOf({{"data"}}),
      GroupOf({{"pipeline"}, {"tensor"}}),
      GroupOf({{.axis = "data", .block = 3}}),
      GroupOf({{.axis = "data", .stride = 2}, {"tensor"}}),
      GroupOf({{.axis = "pipeline", .places = {0, 3}}, {"data"}}),
  };
  for (const Group& group : groups) {
    const std::vector<int> numbers = GroupNumbers(mesh, group);
    ASSERT_EQ(static_cast<int>(numbers.size()), MeshSize(mesh));
    for (int rank = 0; rank < MeshSize(mesh); ++rank) {
      EXPECT_EQ(numbers[rank], GroupNumber(mesh, group, rank));
      std::vector<int> members;
      for (int other = 0; other < MeshSize(mesh); ++other) {
        const int number = GroupNumber(mesh, group, other);
        if (number >= 0 && number == numbers[rank]) members.push_back(other);
      }
      EXPECT_EQ(MembersOf(mesh, group, rank), members);
      EXPECT_EQ(RanksIn(mesh, BoxOf(mesh, group, rank)), members);
      if (members.empty()) continue;
      const Piece piece = PieceOf(mesh, group, rank);
      EXPECT_EQ(piece.count, static_cast<int>(members.size()));
      EXPECT_EQ(members[piece.index], rank);
      for (int i = 0; i < mesh.axes_size(); ++i) {
        const AxisGroups on = GroupsAlong(mesh, group, i);
        const int place = Coordinates(mesh, rank)[i];
        EXPECT_EQ(BoxOf(mesh, group, rank)[i][on.index[place]], place);
        EXPECT_EQ(static_cast<int>(BoxOf(mesh, group, rank)[i].size()),
                  on.ranks);
      }
    }
  }
}

}  // namespace
}  // namespace troupe
