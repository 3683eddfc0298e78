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

// Ranks of one group on an axis of so many places, and groups on it.
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

// The places on an axis that are in a group with this one.
std::vector<int> PlacesWith(const Group::Span* span, int place, int size) {
  if (span == nullptr) return {place};
  if (!span->places().empty()) {
    return {span->places().begin(), span->places().end()};
  }
  std::vector<int> places;
  const int number = NumberOn(span, place);
  for (int other = 0; other < size; ++other) {
    if (NumberOn(span, other) == number) places.push_back(other);
  }
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

std::vector<int> MembersOf(const Mesh& mesh, const Group& group, int rank) {
  if (GroupNumber(mesh, group, rank) < 0) return {};
  const std::vector<int> places = Coordinates(mesh, rank);
  std::vector<int> members = {0};
  for (int i = 0; i < mesh.axes_size(); ++i) {
    const int size = mesh.axes(i).size();
    std::vector<int> longer;
    for (const int member : members) {
      for (const int place :
           PlacesWith(SpanOn(group, mesh.axes(i).name()), places[i], size)) {
        longer.push_back(member * size + place);
      }
    }
    members = std::move(longer);
  }
  return members;
}

Piece PieceOf(const Mesh& mesh, const Group& group, int rank) {
  const std::vector<int> members = MembersOf(mesh, group, rank);
  const auto at = std::find(members.begin(), members.end(), rank);
  CHECK(at != members.end())
      << "rank " << rank << " is in no group " << group.name();
  return {.index = static_cast<int>(at - members.begin()),
          .count = static_cast<int>(members.size())};
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
  return group.spans_size() == 1 && group.spans(0).axis() == axis &&
         group.spans(0).block() == 0 && group.spans(0).stride() == 0 &&
         group.spans(0).places().empty();
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
