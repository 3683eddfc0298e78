#include "scheduler/layouts/axis_rules.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "proto/plan/fields.h"
#include "proto/plan/ops/op_view.h"
#include "proto/plan/sharing.h"
#include "proto/plan/slices.h"
#include "scheduler/layouts/axes.h"
#include "scheduler/layouts/experts.h"

namespace troupe {
namespace {

constexpr absl::string_view kPath = "parallelism.";

bool Fits(const DimRule& rule, bool shares, int64_t count, int size) {
  if (rule.zigzag && size > 1) return count % (2 * size) == 0;
  if (count % size == 0 || (rule.pads && count >= size)) return true;
  return shares && size % count == 0;
}

// What there is to cut.
using Kinds = std::set<Dim::Kind>;  // of the sections of a dim
using Dims = std::vector<Kinds>;
struct Whole {
  std::map<Dim::Kind, int64_t> counts;
  // Of each that has more than rows.
  std::set<Dims> tensors;
  bool has_capacity = false;
  // Of the columns of rows that are normed.
  Kinds normed;
  // Heads of values have another width than those of keys.
  bool has_unlike_values = false;
};
Whole WholeOf(const UnitList& units) {
  Whole whole;
  for (const UnitTable& table : units.tables) {
    for (const Op& op : table.ops()) {
      whole.has_capacity |= op.kind() == Op::CAPACITY;
      const auto shape = AttentionShapeOf({table, op});
      whole.has_unlike_values |=
          shape.has_value() && shape->head_dim != shape->value_dim;
      if (op.kind() != Op::NORM) continue;
      const TensorSpec& x = OpView(table, op).input("x");
      for (const Dim::Section& section : x.dims(x.dims_size() - 1).sections()) {
        whole.normed.insert(section.kind());
      }
    }
    for (const TensorSpec& tensor : table.tensors()) {
      Dims dims;
      for (const Dim& dim : tensor.dims()) {
        Kinds& kinds = dims.emplace_back();
        for (const Dim::Section& section : dim.sections()) {
          // Of several sizes what divides all is what can be cut evenly: dense
          // layers beside experts.
          int64_t& count = whole.counts[section.kind()];
          count = std::gcd(count, section.count());
          kinds.insert(section.kind());
        }
      }
      if (tensor.dims_size() > 2) whole.tensors.insert(dims);
    }
  }
  // No tensor between ops has a dim of these.
  for (const Unit& unit : units.units) {
    for (const Parameter& parameter : unit.parameters()) {
      if (parameter.dims_size() < 3) continue;
      const Dim::Section& experts = parameter.dims(0).sections(0);
      if (experts.kind() != Dim::EXPERT_WEIGHTS) continue;
      int64_t& count = whole.counts[Dim::EXPERT_WEIGHTS];
      count = std::gcd(count, experts.count());
    }
  }
  return whole;
}

// Whether the axis cuts a tensor of such dims there: no rule before wants
// another dim.
bool Cuts(const AxisRules& axis, Dim::Kind kind, const Dims& tensor) {
  for (const DimRule& rule : axis.rules) {
    for (const Kinds& dim : tensor) {
      if (dim.count(rule.kind) > 0) return dim.count(kind) > 0;
    }
  }
  return false;
}

// What the cuts before an axis's leave of a dim, and whose these are. Those
// that batches are loaded in come first, the last of them outermost.
struct Left {
  int64_t count = 0;
  std::string by;
};

// Cuts of units that the job's axes make.
class CutsCheck {
 public:
  CutsCheck(const Whole& whole, const std::vector<AxisRules>& axes)
      : whole_(whole), axes_(axes) {}

  // The outermost cut first: what it leaves is what the others find.
  absl::Status Run() const {
    RETURN_IF_ERROR(CheckExperts());
    RETURN_IF_ERROR(CheckLatents());
    RETURN_IF_ERROR(CheckAdapters());
    RETURN_IF_ERROR(CheckValues());
    for (size_t a = axes_.size(); a-- > 0;) {
      RETURN_IF_ERROR(CheckRules(a, /*loaded=*/true));
    }
    for (size_t a = 0; a < axes_.size(); ++a) {
      RETURN_IF_ERROR(CheckRules(a, /*loaded=*/false));
    }
    return absl::OkStatus();
  }

 private:
  // Products of experts have one side cut, as Megatron's, or rows.
  absl::Status CheckExperts() const {
    if (whole_.counts.count(Dim::EXPERT_WEIGHTS) == 0) return absl::OkStatus();
    for (const AxisRules& axis : axes_) {
      if (RuleOf(axis, Dim::HIDDEN) == nullptr) continue;
      return FieldError(
          absl::StrCat(axis.field.name, "_method"),
          "layers of experts are cut over ranks by the columns within their "
          "experts (1d), not by those of the hidden size as well; use 1d, or "
          "leave it out");
    }
    RETURN_IF_ERROR(CheckFolded());
    return whole_.has_capacity ? CheckCapacity() : absl::OkStatus();
  }

  // It is the ranks of all axes that cut experts which share them.
  absl::Status CheckFolded() const {
    int64_t ranks = 1;
    for (const AxisRules& axis : axes_) {
      if (RuleOf(axis, Dim::EXPERT_WEIGHTS) != nullptr) ranks *= axis.size;
    }
    const int64_t experts = whole_.counts.at(Dim::EXPERT_WEIGHTS);
    // Of ranks of data alone CheckRules says it.
    if (!IsFolded() || experts % ranks == 0) return absl::OkStatus();
    return FieldError(
        kExpertField,
        absl::StrCat(ranks, " ranks cannot share ", experts,
                     " (model.num_experts) evenly; use a number that divides "
                     "these"));
  }

  // Whether ranks of other fields share experts.
  bool IsFolded() const {
    return std::any_of(axes_.begin(), axes_.end(), [](const AxisRules& axis) {
      return RuleOf(axis, Dim::EXPERT_WEIGHTS) != nullptr &&
             axis.field.name != kExpertField;
    });
  }

  // Where keys are handed around, the gradient of queries adds up where those
  // of what was found so far would lie: values are as wide as keys.
  absl::Status CheckValues() const {
    if (!whole_.has_unlike_values) return absl::OkStatus();
    for (const AxisRules& axis : axes_) {
      const DimRule* const rule = RuleOf(axis, Dim::SEQUENCE);
      if (rule == nullptr || !rule->zigzag || axis.size == 1) continue;
      return FieldError(
          absl::StrCat(axis.field.name, "_method"),
          "rings that hand keys around need heads of values as wide as those "
          "of keys, which this model does not have; use ulysses or "
          "ring_self_attention");
    }
    return absl::OkStatus();
  }

  // A latent is as narrow as it is so that every rank has all of it.
  absl::Status CheckLatents() const {
    if (whole_.counts.count(Dim::LATENT) == 0) return absl::OkStatus();
    for (const AxisRules& axis : axes_) {
      if (RuleOf(axis, Dim::HIDDEN) == nullptr) continue;
      return FieldError(absl::StrCat(axis.field.name, "_method"),
                        "latent attention is cut over ranks by heads (1d), not "
                        "by the columns "
                        "of the hidden size as well; use 1d, or leave it out");
    }
    return absl::OkStatus();
  }

  // A product in panels has no place for a second one beside it.
  absl::Status CheckAdapters() const {
    if (whole_.counts.count(Dim::ADAPTER_RANK) == 0) return absl::OkStatus();
    for (const AxisRules& axis : axes_) {
      if (RuleOf(axis, Dim::HIDDEN) == nullptr) continue;
      return FieldError(absl::StrCat(axis.field.name, "_method"),
                        "layers with adapters (training.lora) are cut over "
                        "ranks in one dimension only; use 1d, or leave it out");
    }
    return absl::OkStatus();
  }

  // A place depends on what earlier tokens of the sequence choose: ranks are in
  // their order.
  absl::Status CheckCapacity() const {
    for (const AxisRules& axis : axes_) {
      const DimRule* const rule = RuleOf(axis, Dim::SEQUENCE);
      if (rule == nullptr || !rule->zigzag) continue;
      return FieldError(
          "model.experts.routing",
          absl::StrCat(
              "room of experts is given out by position, but along ",
              axis.axis,
              " each rank has two pieces of a sequence, one from either end; "
              "use dropless, or parallelism.context_method: ulysses"));
    }
    return absl::OkStatus();
  }

  Left LeftFor(size_t axis, const DimRule& rule) const {
    Left left = {.count = whole_.counts.at(rule.kind)};
    std::vector<const SizeField*> before;
    for (size_t other = 0; other < axes_.size(); ++other) {
      const DimRule* const of_other = RuleOf(axes_[other], rule.kind);
      if (other == axis || of_other == nullptr) continue;
      const bool is_before = of_other->loaded ? !rule.loaded || other > axis
                                              : !rule.loaded && other < axis;
      if (!is_before || !BothCut(axes_[axis], axes_[other], rule.kind))
        continue;
      left.count = LargestPiece(left.count, axes_[other].size);
      if (axes_[other].field.name != axes_[axis].field.name) {
        before.push_back(&axes_[other].field);
      }
    }
    // No rank is named twice.
    for (const SizeField* const field : before) {
      const bool is_counted = std::any_of(
          before.begin(), before.end(),
          [field](const SizeField* of) { return of->name == field->part_of; });
      if (is_counted) continue;
      const bool counts = field->name == axes_[axis].field.part_of;
      absl::StrAppend(
          &left.by, left.by.empty() ? "" : " x ", field->name, ": ",
          field->value,
          counts ? absl::StrCat(" in rings of ", field->value / field->ranks)
                 : "");
    }
    return left;
  }

  // Of one field, an axis may cut only what the other leaves whole.
  bool BothCut(const AxisRules& a, const AxisRules& b, Dim::Kind kind) const {
    return a.field.name != b.field.name ||
           std::any_of(whole_.tensors.begin(), whole_.tensors.end(),
                       [&](const Dims& tensor) {
                         return Cuts(a, kind, tensor) && Cuts(b, kind, tensor);
                       });
  }

  bool FitsOn(size_t axis, const DimRule& rule) const {
    return whole_.counts.count(rule.kind) == 0 ||
           Fits(rule, Shares(rule), LeftFor(axis, rule).count,
                axes_[axis].size);
  }

  // Whether several ranks may have the same of it: not where its columns are
  // summed over the ranks.
  bool Shares(const DimRule& rule) const {
    return rule.shares && (rule.turned || whole_.normed.count(rule.kind) == 0);
  }

  // How many pieces of a dim the axes of a field want.
  int PiecesFor(const SizeField& field, Dim::Kind kind) const {
    int most = 1;
    for (const Dims& tensor : whole_.tensors) {
      int pieces = 1;
      for (const AxisRules& axis : axes_) {
        if (axis.field.name != field.name) continue;
        if (Cuts(axis, kind, tensor)) pieces *= axis.size;
      }
      most = std::max(most, pieces);
    }
    return most;
  }

  // Whether the axis could have another size, as far as its own rules tell,
  // those of its field's other axes, and those of the axis that has the other
  // ranks of its field.
  bool CouldBe(size_t axis, int size) const {
    const SizeField& field = axes_[axis].field;
    std::vector<AxisRules> others = axes_;
    others[axis].size = size;
    for (AxisRules& other : others) {
      if (other.field.name == field.part_of) other.size = field.whole / size;
      if (other.field.name == field.name && other.field.power == field.power) {
        other.size = size;
      }
    }
    const CutsCheck check(whole_, others);
    for (size_t a = 0; a < axes_.size(); ++a) {
      const SizeField& of = axes_[a].field;
      const bool of_field = of.name == field.name;
      if (!of_field && of.name != field.part_of && of.part_of != field.name) {
        continue;
      }
      for (const DimRule& rule : axes_[a].rules) {
        if ((of_field || rule.loaded) && !check.FitsOn(a, rule)) return false;
      }
    }
    return true;
  }

  absl::Status CheckRules(size_t axis, bool loaded) const {
    for (const DimRule& rule : axes_[axis].rules) {
      if (rule.loaded != loaded) continue;
      if (rule.in_mesh_order && IsFolded()) continue;
      if (!FitsOn(axis, rule)) return Refusal(axis, rule);
    }
    return absl::OkStatus();
  }

  absl::Status Refusal(size_t axis, const DimRule& rule) const {
    const int size = axes_[axis].size;
    const SizeField& field = axes_[axis].field;
    const Left left = LeftFor(axis, rule);
    std::vector<std::string> uses;
    const auto may_be = [&](int other) {
      return field.MayBe(other) && CouldBe(axis, other);
    };
    int below = size;
    while (below > 0 && !may_be(below)) --below;
    const bool by_method = field.power > 1;
    if (below > 0) uses.push_back(field.TextFor(below));
    int above = size;
    while (above <= left.count && !may_be(above)) ++above;
    if (above <= left.count) uses.push_back(field.TextFor(above));
    if (!field.without.empty() && CouldBe(axis, 1)) {
      uses.push_back(field.without);
    }
    const int pieces = PiecesFor(field, rule.kind);
    if (by_method) {
      uses.push_back(
          rule.pads
              ? absl::StrCat("a ", rule.field, " of ", pieces, " or more")
              : absl::StrCat("a ", rule.field, " that ", pieces, " divides"));
    } else if (uses.empty()) {
      uses.push_back(absl::StrCat("another ", rule.field));
    }
    const int64_t all = whole_.counts.at(rule.kind);
    const std::string what =
        left.by.empty()
            ? absl::StrCat(all, " (", rule.field, ")")
            : absl::StrCat("the ", left.count, " of ", all, " (", rule.field,
                           ") that ", left.by, " leaves");
    return FieldError(
        field.name,
        absl::StrCat(field.value, " ranks cannot share ", what, " evenly",
                     rule.zigzag ? ", two pieces each" : "",
                     by_method ? absl::StrCat(", in ", pieces, " pieces") : "",
                     "; use ", absl::StrJoin(uses, " or ")));
  }

  const Whole& whole_;
  const std::vector<AxisRules>& axes_;
};

bool Holds(const DimRule& rule, const ParallelismSpec& parallelism) {
  return rule.with.empty() ||
         FieldText(parallelism, std::string(rule.with)) == "true";
}

}  // namespace

const DimRule* RuleOf(const AxisRules& axis, Dim::Kind kind) {
  for (const DimRule& rule : axis.rules) {
    if (rule.kind == kind) return &rule;
  }
  return nullptr;
}

std::vector<AxisRules> RulesFor(const ParallelismSpec& parallelism) {
  std::vector<AxisRules> rules;
  for (const LayoutRow* const row : RowsInUse(parallelism)) {
    const std::vector<SharedAxis> axes = AxesOfRow(*row, parallelism);
    for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
      AxisRules& along = rules.emplace_back();
      along.axis = axis->name();
      along.size = axis->size;
      along.field = axis->field;
      along.prepare = axis->row->prepare;
      along.rewrite = axis->row->rewrite;
      for (const DimRule& rule : axis->row->rules) {
        if (Holds(rule, parallelism)) along.rules.push_back(rule);
      }
    }
  }
  for (const LayoutRow* const row : RowsInUse(parallelism)) {
    if (row->fold != nullptr) row->fold(parallelism, rules);
  }
  return rules;
}

std::vector<AxisRules> RulesFor(const ParallelismSpec& strategy,
                                const std::vector<Axis>& factors,
                                const std::string& path) {
  const auto spans = SpansOf(strategy, factors);
  CHECK(spans.has_value()) << SharingText(strategy);
  std::vector<AxisRules> rules;
  for (const AxisRules& own : RulesFor(strategy)) {
    const auto span = std::find_if(
        spans->begin(), spans->end(),
        [&own](const FactorSpan& of) { return of.name == own.axis; });
    if (span == spans->end()) {  // an axis that all units have alike
      rules.push_back(own);
      continue;
    }
    for (const Axis& axis : span->axes) {
      AxisRules& along = rules.emplace_back(own);
      along.axis = axis.name();
      along.size = axis.size();
      along.field.ranks *= own.size / axis.size();
      for (std::string* const field :
           {&along.field.name, &along.field.part_of}) {
        if (absl::StartsWith(*field, kPath)) {
          *field = absl::StrCat(path, ".", field->substr(kPath.size()));
        }
      }
    }
  }
  return rules;
}

absl::Status CheckHasExperts(const UnitList& units,
                             const std::vector<AxisRules>& axes) {
  if (WholeOf(units).counts.count(Dim::EXPERT_WEIGHTS) > 0) {
    return absl::OkStatus();
  }
  for (const AxisRules& axis : axes) {
    if (RuleOf(axis, Dim::EXPERT_WEIGHTS) == nullptr) continue;
    return FieldError(kExpertField,
                      "is for models whose layers have experts, and this one "
                      "has none; leave it out");
  }
  return absl::OkStatus();
}

absl::Status CheckCuts(const UnitList& units,
                       const std::vector<AxisRules>& axes) {
  const bool folds =
      std::any_of(axes.begin(), axes.end(), [](const AxisRules& axis) {
        return RuleOf(axis, Dim::EXPERT_WEIGHTS) != nullptr &&
               RuleOf(axis, Dim::INTERMEDIATE) != nullptr;
      });
  if (!folds) return CutsCheck(WholeOf(units), axes).Run();
  UnitList named = units;
  NameColumnsOfExperts(named);
  return CutsCheck(WholeOf(named), axes).Run();
}

}  // namespace troupe
