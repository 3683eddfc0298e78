// DeepSpeed-Ulysses (arXiv 2309.14509): the positions of each sequence are cut
// over the ranks of an axis, and everything but attention computes on its own.
// Around attention two all-to-alls turn that into whole sequences of some of
// the heads, and back. Where there are fewer key-value heads than ranks,
// neighbours are sent the same ones.
//
// With rings (USP, arXiv 2405.07719): groups of ulysses_size neighbours do
// that, and each such group is one member of a ring (ring_attention.cc).
#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/plan/fields.h"
#include "scheduler/layouts/layouts.h"
#include "scheduler/layouts/ring.h"

namespace troupe {

namespace {

constexpr char kSize[] = "ulysses_size";

RowAxis SequenceOrHeads(absl::string_view axis) {
  return {.name = axis,
          .rules = {{.kind = Dim::SEQUENCE,
                     .field = "training.sequence_length",
                     .loaded = true},
                    {.kind = Dim::HEADS,
                     .field = "model.num_attention_heads",
                     .turned = true},
                    {.kind = Dim::KEY_VALUE_HEADS,
                     .field = "model.num_key_value_heads",
                     .shares = true,
                     .turned = true}},
          .resting = Resting::kDealt,
          .on_one_host = true};
}

// Numbers of neighbours that leave a ring of two or more.
std::vector<int> SizesOf(int ranks) {
  std::vector<int> sizes;
  for (int size = 2; size < ranks; ++size) {
    if (ranks % size == 0) sizes.push_back(size);
  }
  return sizes;
}

std::vector<AxisExtent> RingsAndNeighbours(const ParallelismSpec& parallelism) {
  const int ranks = parallelism.context();
  const int neighbours = std::max(parallelism.ulysses_size(), 1);
  const int ring = std::max(ranks / neighbours, 1);
  const std::string context = "parallelism.context";
  return {
      {.size = ring,
       .field = {.name = context,
                 .value = ring * neighbours,
                 .ranks = neighbours}},
      {.size = neighbours,
       .field = {.name = absl::StrCat("parallelism.", kSize),
                 .value = neighbours,
                 .part_of = context,
                 .whole = ranks,
                 .without = "parallelism.context_method: ring without it"}}};
}

absl::Status CheckSize(ParallelismSpec& parallelism) {
  const std::vector<int> sizes = SizesOf(parallelism.context());
  const int size = parallelism.ulysses_size();
  if (std::count(sizes.begin(), sizes.end(), size) > 0) return absl::OkStatus();
  const std::string of =
      absl::StrCat("the ", parallelism.context(), " of parallelism.context");
  if (sizes.empty()) {
    return FieldError("parallelism.context_method",
                      absl::StrCat("usp makes groups of groups of ", of,
                                   ", which has no divisor; use ring or "
                                   "ulysses, or other ranks"));
  }
  return FieldError(
      absl::StrCat("parallelism.", kSize),
      absl::StrCat("usp needs it, how many neighbours among ", of,
                   " do as with ulysses, the groups being the members of "
                   "rings: one of ",
                   absl::StrJoin(sizes, ", ")));
}

void TrySizes(const ParallelismSpec& parallelism,
              std::vector<ParallelismSpec>& ways) {
  for (const int size : SizesOf(parallelism.context())) {
    ways.push_back(parallelism);
    ways.back().set_ulysses_size(size);
  }
}

}  // namespace

LayoutRow Ulysses() {
  return {.field = "context",
          .method = "ulysses",
          .axes = {SequenceOrHeads("context")},
          .tries = TryAsItIs,
          .fewer = DivisorsOf,
          .is_advised = true};
}

LayoutRow UlyssesInRings() {
  return {.field = "context",
          .method = "usp",
          .fields = {kSize},
          .axes = {RingAxis(), SequenceOrHeads("ulysses")},
          .sizes = RingsAndNeighbours,
          .resolve = CheckSize,
          .tries = TrySizes,
          .tried_last = true,
          .fewer = DivisorsOf};
}

}  // namespace troupe
