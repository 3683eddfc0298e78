// Expert parallelism (GShard, arXiv 2006.16668): ranks that have different
// tokens of a micro-batch have some of the experts of each layer each. Rows go
// to the ranks with their experts and come back (write_rounds.h); all else a
// rank computes for its own tokens. Experts have their whole gradient where
// they are; all other parameters are summed over the same ranks, as over
// replicas.
//
// These ranks are of one or several axes (parallel folding, arXiv 2504.14960):
// `expert`, the ranks of parallelism.data that compute a micro-batch together
// then, each some of its sequences; those of context, which have some of its
// positions; and those of tensor, which between norms have some of its rows
// (sequence_parallel). No second mesh is needed: each axis cuts the experts
// besides what else it cuts.
#include "scheduler/layouts/experts.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/check.h"
#include "proto/base/choices.h"
#include "proto/base/status.h"
#include "proto/plan/fields.h"
#include "proto/plan/sharing.h"
#include "scheduler/layouts/axes.h"
#include "scheduler/layouts/axis_rules.h"
#include "scheduler/layouts/expert_ranks.h"
#include "scheduler/layouts/layouts.h"
#include "scheduler/layouts/write_rounds.h"

namespace troupe {
namespace {

constexpr char kField[] = "expert";
constexpr char kSlack[] = "expert_slack";
constexpr char kTensor[] = "expert_tensor";

constexpr DimRule kExperts = {.kind = Dim::EXPERT_WEIGHTS,
                              .field = "model.num_experts",
                              .in_mesh_order = true};

std::vector<AxisExtent> RanksOfData(const ParallelismSpec& parallelism) {
  const int ranks = ExpertRanksOf(parallelism).data;
  return {{.size = ranks, .field = {.name = kExpertField, .value = ranks}}};
}

// Those that cut experts, in the order of the mesh.
std::vector<std::string> FoldedAxes(const ParallelismSpec& parallelism) {
  const ExpertRanks ranks = ExpertRanksOf(parallelism);
  std::vector<std::string> fields;
  if (ranks.data > 1) fields.emplace_back(kField);
  if (ranks.context) fields.emplace_back("context");
  if (ranks.tensor) fields.emplace_back("tensor");
  std::vector<std::string> axes;
  for (const std::string& field : fields) {
    for (const SharedAxis& axis :
         AxesOfRow(RowOf(parallelism, field), parallelism)) {
      axes.push_back(axis.name());
    }
  }
  return axes;
}

void CutExpertsToo(AxisRules& along) {
  if (RuleOf(along, kExperts.kind) == nullptr) {
    along.rules.insert(along.rules.begin(), kExperts);
  }
  if (RuleOf(along, Dim::INTERMEDIATE) == nullptr) return;
  CHECK(along.prepare == nullptr) << along.axis;
  along.prepare = [](const AxisSpan&, UnitList& units) {
    NameColumnsOfExperts(units);
  };
}

void Fold(const ParallelismSpec& parallelism, std::vector<AxisRules>& rules) {
  const std::vector<std::string> axes = FoldedAxes(parallelism);
  AxisRules* last = nullptr;
  for (AxisRules& along : rules) {
    const auto own = std::find(axes.begin(), axes.end(), along.axis);
    if (own == axes.end()) continue;
    CutExpertsToo(along);
    along.further_in.assign(own + 1, axes.end());
    last = &along;
  }
  if (last == nullptr) return;
  last->finish = [spec = RoundsSpec{.axes = axes,
                                    .ranks = parallelism.expert(),
                                    .slack = parallelism.expert_slack()}](
                     UnitTable& table) { WriteRounds(spec, table); };
}

// Of ranks that do not fit.
absl::Status Misfit(const ParallelismSpec& parallelism) {
  const int ranks = parallelism.expert();
  const int data = parallelism.data();
  const bool may_context = parallelism.context() > 1;
  const bool may_tensor = parallelism.tensor() > 1 &&
                          parallelism.sequence_parallel() &&
                          parallelism.expert_tensor() < 2;
  if (!may_context && !may_tensor) {
    return FieldError(
        kExpertField,
        absl::StrCat(ranks, " does not divide the ", data,
                     " ranks of parallelism.data, which share the experts; "
                     "use ",
                     DivisorsText(data, ranks)));
  }
  std::string from = absl::StrCat("some of the ", data,
                                  " of parallelism.data that divide these");
  if (may_context) {
    absl::StrAppend(&from, ", all ", parallelism.context(),
                    " of parallelism.context");
  }
  if (may_tensor) {
    absl::StrAppend(&from, ", all ", parallelism.tensor(),
                    " of parallelism.tensor");
  }
  const std::vector<int> sizes = ExpertSizes(parallelism);
  return FieldError(
      kExpertField,
      absl::StrCat(ranks, " ranks cannot be made of ", from, "; use ",
                   absl::StrJoin(sizes, ", "), sizes.empty() ? "1" : " or 1"));
}

absl::Status CheckTensor(const ParallelismSpec& parallelism) {
  if (!parallelism.has_expert_tensor()) return absl::OkStatus();
  const std::string path = absl::StrCat("parallelism.", kTensor);
  const int of = parallelism.expert_tensor();
  const int ranks = parallelism.tensor();
  if (of != 1 && of != ranks) {
    return FieldError(
        path, absl::StrCat(of, " of the ", ranks,
                           " ranks of parallelism.tensor cannot share the "
                           "columns of an expert; use ",
                           ranks > 1 ? absl::StrCat(ranks, " or 1") : "1"));
  }
  if (of == ranks || parallelism.sequence_parallel()) return absl::OkStatus();
  return FieldError(path,
                    "1 gives each rank of parallelism.tensor experts of its "
                    "own, and these ranks have the same tokens; use "
                    "parallelism.sequence_parallel: true, or leave it out");
}

// Twice the rows of an even load, and the worst routing in at most eight rounds:
// a balanced router stays in the first one, and a plan does not become long.
double DefaultSlack(int ranks) {
  constexpr double kRoom = 2;
  constexpr double kRoundsMost = 8;
  return std::min<double>(ranks, std::max(kRoom, ranks / kRoundsMost));
}

absl::Status Resolve(ParallelismSpec& parallelism) {
  RETURN_IF_ERROR(CheckTensor(parallelism));
  const ExpertRanks from = ExpertRanksOf(parallelism);
  if (!from.fits) return Misfit(parallelism);
  if ((from.context || from.tensor) && !parallelism.strategies().empty()) {
    return FieldError(
        "parallelism.strategies",
        absl::StrCat("do not go with ", kExpertField, ": ",
                     parallelism.expert(), ", which takes ranks of ",
                     from.context ? "context" : "tensor",
                     " in all units; use ranks of parallelism.data alone, or "
                     "no strategies"));
  }
  const int ranks = parallelism.expert();
  if (!parallelism.has_expert_slack()) {
    parallelism.set_expert_slack(DefaultSlack(ranks));
  }
  return CheckNumber(absl::StrCat("parallelism.", kSlack),
                     parallelism.expert_slack(),
                     {.min = 1, .max = static_cast<double>(ranks)});
}

// As many ranks as may: of data, of data and context, and those of tensor with
// others.
void TryOfData(const ParallelismSpec& parallelism, const ModelSpec& model,
               std::vector<ParallelismSpec>& ways) {
  const int experts = model.num_experts();
  if (experts < 2) return;
  const auto try_with = [&](int besides, bool whole) {
    if (experts % besides != 0) return;
    const int ranks = besides * std::gcd(parallelism.data(), experts / besides);
    if (ranks < 2) return;
    ParallelismSpec way = parallelism;
    way.set_expert(ranks);
    if (whole) way.set_expert_tensor(1);
    if (ExpertRanksOf(way).fits) ways.push_back(way);
  };
  try_with(1, /*whole=*/false);
  const int context = std::max(parallelism.context(), 1);
  if (context > 1) try_with(context, /*whole=*/false);
  if (!parallelism.sequence_parallel()) return;
  try_with(parallelism.tensor(), /*whole=*/true);
  if (context > 1) try_with(parallelism.tensor() * context, /*whole=*/true);
}

bool IsRow(const TensorSpec& tensor) {
  return std::any_of(tensor.dims().begin(), tensor.dims().end(),
                     [](const Dim& dim) {
                       return dim.sections_size() > 0 &&
                              dim.sections(0).kind() == Dim::CHOICES;
                     });
}

void NameColumns(google::protobuf::RepeatedPtrField<Dim>& dims) {
  for (Dim& dim : dims) {
    for (Dim::Section& section : *dim.mutable_sections()) {
      if (section.kind() != Dim::INTERMEDIATE) continue;
      section.set_kind(Dim::EXPERT_INTERMEDIATE);
    }
  }
}

}  // namespace

void NameColumnsOfExperts(UnitList& units) {
  for (UnitTable& table : units.tables) {
    for (TensorSpec& tensor : *table.mutable_tensors()) {
      if (IsRow(tensor)) NameColumns(*tensor.mutable_dims());
    }
  }
  for (Unit& unit : units.units) {
    for (Parameter& parameter : *unit.mutable_parameters()) {
      const Dim& first = parameter.dims(0);
      if (first.sections(0).kind() != Dim::EXPERT_WEIGHTS) continue;
      NameColumns(*parameter.mutable_dims());
    }
  }
}

LayoutRow Experts() {
  return {.field = kField,
          .fields = {kSlack, kTensor},
          .axes = {{.name = "expert",
                    .rules = {kExperts,
                              {.kind = Dim::BATCH,
                               .field = "training.micro_batch_size"}},
                    .resting = Resting::kDealt,
                    .on_one_host = true}},
          .sizes = RanksOfData,
          .along = FoldedAxes,
          .fold = Fold,
          .resolve = Resolve,
          .no_sample = "ranks write a text with units that have all experts",
          .tries_of_data = TryOfData,
          .leaves_out_defaults = true};
}

}  // namespace troupe
