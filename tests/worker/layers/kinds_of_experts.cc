#include "tests/worker/layers/kinds_of_experts.h"

#include <utility>

#include "proto/plan/tensor_spec.h"
#include "tests/worker/layers/small_dims.h"

namespace troupe {
namespace {

// Rows of experts, which have a weight each.
constexpr int64_t kChoices = 2;
constexpr int64_t kExperts = 4;

std::vector<Dim> OfChoices(const Dim& columns) {
  std::vector<Dim> dims = With(DimOf({{Dim::CHOICES, kChoices}}));
  dims.push_back(columns);
  return dims;
}

// What each token chooses: one expert has no token.
std::vector<int32_t> ChoicesOfTokens() {
  return {0, 3, 3, 0, 1, 0, 0, 1, 3, 1, 1, 3, 0, 3, 3, 1, 1, 0, 3, 0};
}

// As ops/permute.h sorts them.
std::vector<int32_t> SourcesOf(const std::vector<int32_t>& choices) {
  std::vector<int32_t> sources;
  for (int expert = 0; expert < kExperts; ++expert) {
    for (size_t i = 0; i < choices.size(); ++i) {
      if (choices[i] == expert) sources.push_back(static_cast<int32_t>(i));
    }
  }
  return sources;
}

std::vector<int32_t> PlacesOf(const std::vector<int32_t>& sources) {
  std::vector<int32_t> places(sources.size());
  for (size_t i = 0; i < sources.size(); ++i) {
    places[sources[i]] = static_cast<int32_t>(i);
  }
  return places;
}

std::vector<int32_t> OffsetsOf(const std::vector<int32_t>& choices) {
  std::vector<int32_t> offsets(kExperts + 1);
  for (const int32_t choice : choices) {
    for (int e = choice; e < kExperts; ++e) ++offsets[e + 1];
  }
  return offsets;
}

std::vector<Dim> OffsetsDims() {
  return {DimOf({{Dim::STATISTICS, kExperts + 1}})};
}

// Of rows that fill their tensors.
OneOpSpec GroupedSwiGlu() {
  const Dim columns = DimOf({{Dim::INTERMEDIATE, kHidden}});
  const Dim both =
      DimOf({{Dim::INTERMEDIATE, kHidden}, {Dim::INTERMEDIATE, kHidden}});
  return {.name = "SwiGluOfGroups",
          .op = OfKind(Op::SWIGLU),
          .inputs = {{"gate_up", OfChoices(both)},
                     {"weights", With(DimOf({{Dim::CHOICES, kChoices}})), F32},
                     {.name = "offsets",
                      .dims = OffsetsDims(),
                      .dtype = I32,
                      .ints = OffsetsOf(ChoicesOfTokens())}},
          .outputs = {{"y", OfChoices(columns)}}};
}

OneOpSpec WeightedSwiGlu() {
  const Dim columns = DimOf({{Dim::INTERMEDIATE, kHidden}});
  const Dim both =
      DimOf({{Dim::INTERMEDIATE, kHidden}, {Dim::INTERMEDIATE, kHidden}});
  return {.name = "SwiGluOfWeightedRows",
          .op = OfKind(Op::SWIGLU),
          .inputs = {{"gate_up", With(both)}, {"weights", Rows(), F32}},
          .outputs = {{"y", With(columns)}}};
}

// Of a GPT-2's experts. `grouped`: of rows that fill their tensors.
OneOpSpec WeightedGelu(const char* name, bool grouped) {
  const std::vector<Dim> columns =
      OfChoices(DimOf({{Dim::INTERMEDIATE, kHidden}}));
  OneOpSpec spec = {
      .name = name,
      .op = OfKind(Op::GELU),
      .inputs = {{"x", columns},
                 {"weights", With(DimOf({{Dim::CHOICES, kChoices}})), F32}},
      .outputs = {{"y", columns}}};
  if (grouped) {
    spec.inputs.push_back({.name = "offsets",
                           .dims = OffsetsDims(),
                           .dtype = I32,
                           .ints = OffsetsOf(ChoicesOfTokens())});
  }
  return spec;
}

OneOpSpec Route(const char* name, bool renormalise, int groups) {
  constexpr int64_t kOfGroup = 3;
  const Dim experts = DimOf({{Dim::EXPERTS, groups * kOfGroup}});
  const Dim choices = DimOf({{Dim::CHOICES, kChoices}});
  OneOpSpec spec = {.name = name,
                    .op = OfKind(Op::ROUTE),
                    // So far apart that no difference changes a choice.
                    .inputs = {{.name = "logits",
                                .dims = With(experts),
                                .dtype = F32,
                                .scale = 5}},
                    .outputs = {{"choices", With(choices), I32},
                                {"gates", With(choices), F32},
                                {"scores", With(experts), F32}}};
  Op::Route& route = *spec.op.mutable_route();
  route.set_sigmoid(groups > 1);
  route.set_renormalise(renormalise);
  route.set_scale(1.5);
  route.set_groups(groups);
  route.set_groups_used((groups + 1) / 2);
  return spec;
}

// The balance of each sequence by its load, and the z-loss; each alone, too.
OneOpSpec RouterLoss(const char* name, double balance, double z) {
  const Dim experts = DimOf({{Dim::EXPERTS, kExperts}});
  OneOpSpec spec = {.name = name,
                    .op = OfKind(Op::ROUTER_LOSS),
                    .inputs = {{.name = "scores",
                                .dims = With(experts),
                                .dtype = F32,
                                .scale = 0.3,
                                .shift = 1},
                               {.name = "choices",
                                .dims = With(DimOf({{Dim::CHOICES, kChoices}})),
                                .dtype = I32,
                                .ints = ChoicesOfTokens()}}};
  if (balance > 0) {
    spec.inputs.push_back({.name = "load",
                           .dims = {DimOf({{Dim::BATCH, kBatch}}),
                                    DimOf({{Dim::STATISTICS, kExperts}})},
                           .dtype = F32});
  }
  if (z > 0) spec.inputs.push_back({"logsumexp", Rows(), F32});
  spec.op.mutable_router_loss()->set_balance_coefficient(balance);
  spec.op.mutable_router_loss()->set_z_coefficient(z);
  return spec;
}

OneOpSpec RouterLoad() {
  return {.name = "RouterLoad",
          .op = OfKind(Op::ROUTER_LOAD),
          .inputs = {{.name = "choices",
                      .dims = With(DimOf({{Dim::CHOICES, kChoices}})),
                      .dtype = I32,
                      .ints = ChoicesOfTokens()}},
          .outputs = {{"load",
                       {DimOf({{Dim::BATCH, kBatch}}),
                        DimOf({{Dim::STATISTICS, kExperts}})},
                       F32}}};
}

// Room for two choices of a sequence: of five tokens some find none.
OneOpSpec Capacity() {
  const Dim choices = DimOf({{Dim::CHOICES, kChoices}});
  OneOpSpec spec = {.name = "Capacity",
                    .op = OfKind(Op::CAPACITY),
                    .inputs = {{.name = "choices",
                                .dims = With(choices),
                                .dtype = I32,
                                .ints = ChoicesOfTokens()},
                               {"gates", With(choices), F32}},
                    .outputs = {{"kept", With(choices), F32}}};
  spec.op.mutable_capacity()->set_places(2);
  spec.op.mutable_capacity()->set_experts(kExperts);
  return spec;
}

OneOpSpec Dispatch() {
  const Dim choices = DimOf({{Dim::CHOICES, kChoices}});
  return {.name = "Dispatch",
          .op = OfKind(Op::DISPATCH),
          .inputs = {{"x", Columns(kHidden)},
                     {.name = "choices",
                      .dims = With(choices),
                      .dtype = I32,
                      .ints = ChoicesOfTokens()},
                     {"gates", With(choices), F32}},
          .outputs = {{"rows", OfChoices(DimOf({{Dim::HIDDEN, kHidden}}))},
                      {"row_gates", With(choices), F32},
                      {"sources", With(choices), I32},
                      {"places", With(choices), I32},
                      {"offsets", OffsetsDims(), I32}}};
}

OneOpSpec GroupedLinear(const char* name, const std::vector<int64_t>& out) {
  OneOpSpec spec = {
      .name = name,
      .op = OfKind(Op::GROUPED_LINEAR),
      .inputs = {{"x", OfChoices(DimOf({{Dim::HIDDEN, kHidden}}))},
                 {.name = "offsets",
                  .dims = OffsetsDims(),
                  .dtype = I32,
                  .ints = OffsetsOf(ChoicesOfTokens())}}};
  Dim columns;
  for (const int64_t part : out) {
    columns.mutable_sections()->MergeFrom(
        DimOf({{Dim::INTERMEDIATE, part}}).sections());
    spec.parameters.push_back({kExperts, part, kHidden});
  }
  spec.outputs = {{"y", OfChoices(columns)}};
  return spec;
}

OneOpSpec Combine() {
  const Dim choices = DimOf({{Dim::CHOICES, kChoices}});
  const std::vector<int32_t> sources = SourcesOf(ChoicesOfTokens());
  return {.name = "Combine",
          .op = OfKind(Op::COMBINE),
          .inputs = {{"x", OfChoices(DimOf({{Dim::HIDDEN, kHidden}}))},
                     {.name = "sources",
                      .dims = With(choices),
                      .dtype = I32,
                      .ints = sources},
                     {.name = "places",
                      .dims = With(choices),
                      .dtype = I32,
                      .ints = PlacesOf(sources)}},
          .outputs = {{"y", Columns(kHidden)}}};
}

// Rows of two ranks for the first's experts 0 and 1, of which round 1 is full:
// 2 of source 0, then 7 and 11 of source 1.
OneOpSpec::Operand OffsetsOfRanks() {
  return {.name = "offsets",
          .dims = {DimOf({{Dim::STATISTICS, 2}}),
                   DimOf({{Dim::STATISTICS, kExperts + 1}})},
          .dtype = I32,
          .ints = {0, 13, 22, 30, 31, 0, 7, 21, 21, 40}};
}

Op OfRound(Op::Kind kind) {
  Op op = OfKind(kind);
  op.mutable_round()->add_axes("expert");
  op.mutable_round()->set_ranks(2);
  op.mutable_round()->set_number(1);
  return op;
}

OneOpSpec Regroup() {
  const Dim choices = DimOf({{Dim::CHOICES, kChoices}});
  const std::vector<Dim> rows = OfChoices(DimOf({{Dim::HIDDEN, kHidden}}));
  return {
      .name = "Regroup",
      .op = OfRound(Op::REGROUP),
      .inputs = {{"x", rows}, {"gates", With(choices), F32}, OffsetsOfRanks()},
      .outputs = {{"rows", rows},
                  {"row_gates", With(choices), F32},
                  {"own_offsets", {DimOf({{Dim::STATISTICS, 3}})}, I32}}};
}

OneOpSpec Ungroup() {
  const std::vector<Dim> rows = OfChoices(DimOf({{Dim::HIDDEN, kHidden}}));
  return {.name = "Ungroup",
          .op = OfRound(Op::UNGROUP),
          .inputs = {{"x", rows}, OffsetsOfRanks()},
          .outputs = {{"y", rows}}};
}

}  // namespace

std::vector<OneOpSpec> KindsOfExperts() {
  return {
      WeightedSwiGlu(),
      GroupedSwiGlu(),
      WeightedGelu("GeluOfWeightedRows", false),
      WeightedGelu("GeluOfGroups", true),
      Route("Route", false, 1),
      Route("RouteRenormalised", true, 1),
      Route("RouteOfGroups", true, 2),
      RouterLoss("RouterLoss", 0.7, 0.3),
      RouterLoss("RouterLossOfBalance", 0.7, 0),
      RouterLoss("RouterLossOfLogits", 0, 0.3),
      RouterLoad(),
      Capacity(),
      Dispatch(),
      GroupedLinear("GroupedLinear", {9}),
      GroupedLinear("GroupedLinearOfTwo", {5, 4}),
      Combine(),
      Regroup(),
      Ungroup(),
  };
}

}  // namespace troupe
