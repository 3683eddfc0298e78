#include "tests/worker/layers/kinds_of_adapters.h"

#include <algorithm>

#include "proto/plan/tensor_spec.h"
#include "tests/worker/layers/small_dims.h"

namespace troupe {
namespace {

constexpr float kMasked = 0.3f;

// Of columns in three sections, those that `ups` say are adapted.
struct LowRankSpec {
  const char* name;
  int64_t in = kHidden;
  int64_t rank = 3;
  struct Up {
    int section = 0;
    int sections = 1;
    int down = 0;
  };
  std::vector<Up> ups = {};
  bool masked = false;
};

OneOpSpec LowRank(const LowRankSpec& adapter) {
  constexpr int64_t kSections[] = {6, 4, 5};
  const Dim columns = DimOf({{Dim::HIDDEN, kSections[0]},
                             {Dim::HIDDEN, kSections[1]},
                             {Dim::HIDDEN, kSections[2]}});
  OneOpSpec spec = {
      .name = adapter.name,
      .op = OfKind(Op::LOW_RANK),
      .inputs = {{"x", Columns(adapter.in)}, {"base", With(columns)}}};
  spec.op.mutable_low_rank()->set_scale(1.5);
  int downs = 0;
  for (const LowRankSpec::Up& up : adapter.ups) {
    Op::LowRank::Columns& of = *spec.op.mutable_low_rank()->add_columns();
    of.set_section(up.section);
    of.set_sections(up.sections);
    of.set_down(up.down);
    downs = std::max(downs, up.down + 1);
  }
  Dim low;
  for (int a = 0; a < downs; ++a) {
    spec.parameters.push_back({adapter.rank, adapter.in});
    low.MergeFrom(DimOf({{Dim::ADAPTER_RANK, adapter.rank}}));
  }
  for (const LowRankSpec::Up& up : adapter.ups) {
    int64_t out = 0;
    for (int s = 0; s < up.sections; ++s) out += kSections[up.section + s];
    spec.parameters.push_back({out, adapter.rank});
  }
  spec.outputs = {{"y", With(columns)}, {"low", With(low)}};
  if (!adapter.masked) return spec;
  spec.op.mutable_mask()->set_probability(kMasked);
  spec.op.mutable_mask()->set_site(2);
  spec.outputs.push_back({"masked", Columns(adapter.in)});
  return spec;
}

}  // namespace

std::vector<OneOpSpec> KindsOfAdapters() {
  return {
      LowRank({.name = "LowRank", .ups = {{0, 3, 0}}}),
      LowRank({.name = "LowRankOfSome", .ups = {{0, 1, 0}, {2, 1, 1}}}),
      // 4 x 8 elements fill cache lines.
      LowRank({.name = "LowRankJoined",
               .in = 8,
               .rank = 4,
               .ups = {{0, 1, 0}, {1, 1, 1}}}),
      LowRank({.name = "LowRankWithOneDown",
               .ups = {{0, 1, 0}, {1, 1, 0}, {2, 1, 0}}}),
      LowRank({.name = "LowRankMasked", .ups = {{0, 2, 0}}, .masked = true}),
  };
}

}  // namespace troupe
