#include "proto/plan/groups.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/check.h"
#include "proto/plan/mesh.h"

namespace troupe {
namespace {

const Group::Span* SpanOn(const Group& group, absl::string_view axis) {
  for (const Group::Span& span : group.spans()) {
    if (span.axis() == axis) return &span;
  }
  return nullptr;
}

// Ranks of one group on an axis of `places` places, and groups on it.
int RanksOn(const Group::Span* span, int places) {
  if (span == nullptr) return 1;
  if (!span->places().empty()) return span->places_size();
  if (span->stride() > 0) return places / span->stride();
  return span->block() > 0 ? span->block() : places;
}
int GroupsOn(const Group::Span* span, int places) {
  if (span == nullptr) return places;
  if (span->stride() > 0) return span->stride();
  return span->block() > 0 ? places / span->block() : 1;
}

// Which group of those on an axis has this place; -1: none.
int NumberOn(const Group::Span* span, int place) {
  if (span == nullptr) return place;
  if (span->block() > 0) return place / span->block();
  if (span->stride() > 0) return place % span->stride();
  const auto& places = span->places();
  const bool spanned =
      places.empty() || std::binary_search(places.begin(), places.end(), place);
  return spanned ? 0 : -1;
}

// Which of the places of its group a place of an axis is. REQUIRES that it is
// in one.
int IndexOn(const Group::Span* span, int place) {
  if (span == nullptr) return 0;
  if (span->block() > 0) return place % span->block();
  if (span->stride() > 0) return place / span->stride();
  const auto& places = span->places();
  if (places.empty()) return place;
  return static_cast<int>(
      std::lower_bound(places.begin(), places.end(), place) - places.begin());
}

// The places on an axis that are in a group with this one.
std::vector<int> PlacesWith(const Group::Span* span, int place, int size) {
  if (span == nullptr) return {place};
  if (!span->places().empty()) {
    return {span->places().begin(), span->places().end()};
  }
  const int count = RanksOn(span, size);
  const int step = std::max(span->stride(), 1);
  const int first = place - IndexOn(span, place) * step;
  std::vector<int> places(count);
  for (int i = 0; i < count; ++i) places[i] = first + i * step;
  return places;
}

absl::Status CheckSpan(const Mesh& mesh, const Group::Span& span) {
  const auto axis =
      std::find_if(mesh.axes().begin(), mesh.axes().end(),
                   [&](const Axis& a) { return a.name() == span.axis(); });
  if (axis == mesh.axes().end()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "spans axis ", span.axis(), " of the mesh ", MeshText(mesh)));
  }
  const auto fits = [&](int piece) {
    return piece == 0 || (piece > 0 && axis->size() % piece == 0);
  };
  if (!fits(span.block()) || !fits(span.stride())) {
    return absl::FailedPreconditionError(absl::StrCat(
        "spans ",
        fits(span.stride()) ? absl::StrCat("blocks of ", span.block())
                            : absl::StrCat("every ", span.stride()),
        " of the ", axis->size(), " places on ", span.axis()));
  }
  const int ways = (span.block() > 0 ? 1 : 0) + (span.stride() > 0 ? 1 : 0) +
                   (span.places().empty() ? 0 : 1);
  if (ways > 1) {
    return absl::FailedPreconditionError(
        absl::StrCat("spans blocks, strides or places of ", span.axis(),
                     ", more than one of them"));
  }
  int before = -1;
  for (const int place : span.places()) {
    if (place <= before || place >= axis->size()) {
      return absl::FailedPreconditionError(absl::StrCat(
          "spans place ", place, " after ", before, " of ", axis->size(),
          " on ", span.axis(), "; want them ascending"));
    }
    before = place;
  }
  return absl::OkStatus();
}

absl::Status CheckGroupWeights(const Mesh& mesh, const Group& group) {
  if (group.weights().empty()) return absl::OkStatus();
  const int size = GroupSize(mesh, group);
  const auto [least, most] =
      std::minmax_element(group.weights().begin(), group.weights().end());
  if (group.weights_size() == size && *least >= 1 && *most <= kWeightMax) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "has weights [", absl::StrJoin(group.weights(), ", "),
      "]; want one of 1 to ", kWeightMax, " for each of its ", size, " ranks"));
}

bool IsAllOf(const Group::Span& span, absl::string_view axis) {
  return span.axis() == axis && span.block() == 0 && span.stride() == 0 &&
         span.places().empty();
}

}  // namespace

absl::Status CheckGroup(const Mesh& mesh, const Group& group) {
  std::set<std::string> named;
  absl::Status fault;
  for (const Group::Span& span : group.spans()) {
    fault.Update(CheckSpan(mesh, span));
    if (!named.insert(span.axis()).second) {
      fault.Update(absl::FailedPreconditionError(
          absl::StrCat("spans axis ", span.axis(), " twice")));
    }
  }
  if (fault.ok() && group.carriers_size() > 1 &&
      group.carriers_size() != GroupCount(mesh, group)) {
    fault.Update(absl::FailedPreconditionError(
        absl::StrCat("has ", group.carriers_size(), " carriers for ",
                     GroupCount(mesh, group), " groups")));
  }
  if (fault.ok()) fault.Update(CheckGroupWeights(mesh, group));
  if (fault.ok()) return fault;
  return absl::FailedPreconditionError(
      absl::StrCat("group ", group.name(), " ", fault.message()));
}

int GroupSize(const Mesh& mesh, const Group& group) {
  int size = 1;
  for (const Axis& axis : mesh.axes()) {
    size *= RanksOn(SpanOn(group, axis.name()), axis.size());
  }
  return size;
}

int GroupCount(const Mesh& mesh, const Group& group) {
  int count = 1;
  for (const Axis& axis : mesh.axes()) {
    count *= GroupsOn(SpanOn(group, axis.name()), axis.size());
  }
  return count;
}

int GroupNumber(const Mesh& mesh, const Group& group, int rank) {
  const std::vector<int> places = Coordinates(mesh, rank);
  int number = 0;
  for (int i = 0; i < mesh.axes_size(); ++i) {
    const Group::Span* const span = SpanOn(group, mesh.axes(i).name());
    const int on = NumberOn(span, places[i]);
    if (on < 0) return -1;
    number = number * GroupsOn(span, mesh.axes(i).size()) + on;
  }
  return number;
}

std::vector<int> GroupNumbers(const Mesh& mesh, const Group& group) {
  std::vector<int> numbers = {0};
  for (int i = 0; i < mesh.axes_size(); ++i) {
    const AxisGroups cut = GroupsAlong(mesh, group, i);
    std::vector<int> longer;
    longer.reserve(numbers.size() * cut.number.size());
    for (const int number : numbers) {
      for (const int on : cut.number) {
        longer.push_back(number < 0 || on < 0 ? -1 : number * cut.groups + on);
      }
    }
    numbers = std::move(longer);
  }
  return numbers;
}

std::vector<int> MembersOf(const Mesh& mesh, const Group& group, int rank) {
  return RanksIn(mesh, BoxOf(mesh, group, rank));
}

Box BoxOf(const Mesh& mesh, const Group& group, int rank) {
  if (GroupNumber(mesh, group, rank) < 0) return {};
  const std::vector<int> places = Coordinates(mesh, rank);
  Box box;
  for (int i = 0; i < mesh.axes_size(); ++i) {
    const Axis& axis = mesh.axes(i);
    box.push_back(
        PlacesWith(SpanOn(group, axis.name()), places[i], axis.size()));
  }
  return box;
}

std::vector<int> RanksIn(const Mesh& mesh, const Box& box) {
  if (box.empty() && mesh.axes_size() > 0) return {};
  std::vector<int> ranks = {0};
  for (int i = 0; i < mesh.axes_size(); ++i) {
    std::vector<int> longer;
    longer.reserve(ranks.size() * box[i].size());
    for (const int rank : ranks) {
      for (const int place : box[i]) {
        longer.push_back(rank * mesh.axes(i).size() + place);
      }
    }
    ranks = std::move(longer);
  }
  return ranks;
}

AxisGroups GroupsAlong(const Mesh& mesh, const Group& group, int axis) {
  const int size = mesh.axes(axis).size();
  const Group::Span* const span = SpanOn(group, mesh.axes(axis).name());
  AxisGroups cut = {.number = std::vector<int>(size),
                    .index = std::vector<int>(size),
                    .groups = GroupsOn(span, size),
                    .ranks = RanksOn(span, size)};
  for (int place = 0; place < size; ++place) {
    cut.number[place] = NumberOn(span, place);
    cut.index[place] = IndexOn(span, place);
  }
  return cut;
}

Piece PieceOf(const Mesh& mesh, const Group& group, int rank) {
  CHECK_GE(GroupNumber(mesh, group, rank), 0)
      << "rank " << rank << " is in no group " << group.name();
  const std::vector<int> places = Coordinates(mesh, rank);
  Piece piece = {.index = 0, .count = 1};
  for (int i = 0; i < mesh.axes_size(); ++i) {
    const Group::Span* const span = SpanOn(group, mesh.axes(i).name());
    const int ranks = RanksOn(span, mesh.axes(i).size());
    piece.index = piece.index * ranks + IndexOn(span, places[i]);
    piece.count *= ranks;
  }
  return piece;
}

const Group::Carrier& CarrierOf(const Group& group, int number) {
  if (group.carriers().empty()) return Group::Carrier::default_instance();
  return group.carriers(group.carriers_size() == 1 ? 0 : number);
}

std::string GroupName(const Mesh& mesh, const Group& group, int rank) {
  const int number = GroupNumber(mesh, group, rank);
  CHECK_GE(number, 0) << "rank " << rank << " is in no group " << group.name();
  return absl::StrCat(group.name(), "-", number);
}

bool IsAlong(const Group& group, absl::string_view axis) {
  return group.spans_size() == 1 && IsAllOf(group.spans(0), axis);
}

bool IsAlong(const Group& group,
             const google::protobuf::RepeatedPtrField<std::string>& axes) {
  return std::equal(group.spans().begin(), group.spans().end(), axes.begin(),
                    axes.end(), IsAllOf);
}

bool Spans(const Mesh& mesh, const Group& group, absl::string_view axis) {
  return RanksOn(SpanOn(group, axis), AxisSize(mesh, axis)) > 1;
}

std::string SpansText(const Group& group) {
  if (group.spans().empty()) return "none";
  return absl::StrJoin(
      group.spans(), " x ", [](std::string* out, const Group::Span& span) {
        absl::StrAppend(out, span.axis());
        if (span.block() > 0) absl::StrAppend(out, " by ", span.block());
        if (span.stride() > 0) absl::StrAppend(out, " every ", span.stride());
        if (!span.places().empty()) {
          absl::StrAppend(out, " ", absl::StrJoin(span.places(), ","));
        }
      });
}

int PeerRank(const Mesh& mesh, int rank, int pipeline_place) {
  return RankOfPipeline(mesh, PipelineOf(mesh, rank), pipeline_place);
}

}  // namespace troupe
