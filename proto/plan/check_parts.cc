#include "proto/plan/check_parts.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/plan/mesh.h"
#include "proto/plan/ops/op_rules.h"
#include "proto/plan/slices.h"

namespace troupe {
namespace {

// A slice of it, or a summand.
bool IsPartAlong(const Layout& layout, const std::string& axis) {
  for (const Layout::AxisLayout& of : layout.axes()) {
    if (of.axis() == axis) return of.placement() != Layout::REPLICATE;
  }
  return false;
}

// How ranks along one axis have a parameter and its gradient.
struct Share {
  int copies = 1;
  bool summed = false;
  bool operator==(const Share&) const = default;
};

std::string Text(const Share& share) {
  if (share.copies == 1) return "a piece each";
  return absl::StrCat(
      share.copies, " neighbours the same, with ",
      share.summed ? "summands of its gradient" : "its gradient, too");
}

// One unit along one axis.
class AxisCheck {
 public:
  AxisCheck(const Plan& plan, int unit, const Axis& axis)
      : plan_(plan), unit_(plan.units(unit)), index_(unit), axis_(axis) {}

  absl::Status Run() const {
    for (int p = 0; p < unit_.parameters_size(); ++p) {
      const int part = PartOf(unit_.parameters(p));
      if (part < 0) {
        return Fault(p, "does not lie in one of its unit's parts");
      }
      for (const Dim& dim : unit_.parameters(p).dims()) {
        for (const Dim::Section& section : dim.sections()) {
          const Dim::Section::Cut* const cut = CutBy(section, axis_.name());
          if (cut == nullptr || cut->whole() > 0) continue;
          return Fault(p, "is cut, and nothing says of how much");
        }
      }
      const Share said = SaidOf(unit_.parts(part));
      const Share found = ShareOf(p);
      if (!(said == found)) {
        return Fault(
            p, absl::StrCat("is in part ", part, ", of which ranks have ",
                            Text(said), ", but of it they have ", Text(found)));
      }
      RETURN_IF_ERROR(CheckTied(p));
    }
    return absl::OkStatus();
  }

 private:
  int PartOf(const Parameter& parameter) const {
    const int64_t begin = parameter.offset();
    for (int p = 0; p < unit_.parts_size(); ++p) {
      const Range part = RangeOfPart(unit_, p);
      if (begin < part.begin || begin >= part.end) continue;
      return begin + LocalElements(parameter) <= part.end ? p : -1;
    }
    return -1;
  }

  Share SaidOf(const Unit::Part& part) const {
    for (const Unit::Part::Share& share : part.shares()) {
      if (share.axis() != axis_.name()) continue;
      return {.copies = share.copies(), .summed = share.summed()};
    }
    return {};
  }

  // Units that use it too add to its gradient what is a summand where its own
  // unit's is one.
  absl::Status CheckTied(int parameter) const {
    if (IsCut(parameter)) return absl::OkStatus();
    const bool summed = IsSummed(unit_, parameter);
    for (int u = 0; u < plan_.units_size(); ++u) {
      const Unit& user = plan_.units(u);
      for (int t = 0; t < user.tied_size(); ++t) {
        if (user.tied(t).unit() != index_ ||
            user.tied(t).parameter() != unit_.parameters(parameter).name() ||
            IsSummed(user, user.parameters_size() + t) == summed) {
          continue;
        }
        return Fault(
            parameter,
            absl::StrCat("has a gradient of which ranks have ",
                         summed ? "summands" : "all", ", and unit ", u,
                         " adds ", summed ? "all to it" : "summands to it"));
      }
    }
    return absl::OkStatus();
  }

  bool IsCut(int parameter) const {
    for (const Dim& dim : unit_.parameters(parameter).dims()) {
      for (const Dim::Section& section : dim.sections()) {
        if (CutBy(section, axis_.name()) != nullptr) return true;
      }
    }
    return false;
  }

  Share ShareOf(int parameter) const {
    Share share = {.copies = axis_.size(),
                   .summed = IsSummed(unit_, parameter)};
    for (const Dim& dim : unit_.parameters(parameter).dims()) {
      for (const Dim::Section& section : dim.sections()) {
        const Dim::Section::Cut* const cut = CutBy(section, axis_.name());
        if (cut == nullptr) continue;
        // A rank with the same piece works on others' queries with it.
        share.copies = CopiesOfPiece(cut->whole(), axis_.size());
        share.summed = share.copies > 1;
      }
    }
    return share;
  }

  // Of a parameter that is whole on all ranks: its gradient is a sum over all
  // that an op makes with it, of which each rank has a slice where that is cut,
  // or a summand. Of an op that makes nothing (ROUTER_LOSS) the same holds for
  // what it reads; and where it multiplies again what it has made itself
  // (LOW_RANK), for that.
  bool IsSummed(const Unit& user, int parameter) const {
    const UnitTable& table = plan_.tables(user.table());
    for (const Op& op : table.ops()) {
      for (const int used : op.parameters()) {
        if (used != parameter) continue;
        if (op.outputs().empty() && ReadsPart(table, op)) return true;
        for (const Op::Operand& output : op.outputs()) {
          const TensorSpec& made = table.tensors(output.tensor());
          if (IsPartAlong(made.gradient_layout(), axis_.name())) return true;
        }
        for (const int own : OwnGradientsOf(op, RulesOf({table, op}))) {
          const TensorSpec& made = table.tensors(op.outputs(own).tensor());
          if (IsPartAlong(made.layout(), axis_.name())) return true;
        }
      }
    }
    return false;
  }

  bool ReadsPart(const UnitTable& table, const Op& op) const {
    for (const Op::Operand& input : op.inputs()) {
      const TensorSpec& read = table.tensors(input.tensor());
      if (IsPartAlong(read.layout(), axis_.name())) return true;
    }
    return false;
  }

  absl::Status Fault(int parameter, absl::string_view what) const {
    return absl::FailedPreconditionError(
        absl::StrCat("unit ", index_, ": along ", axis_.name(), ", ",
                     unit_.parameters(parameter).name(), " ", what));
  }

  const Plan& plan_;
  const Unit& unit_;
  const int index_;
  const Axis& axis_;
};

absl::Status PartFault(int unit, int part, absl::string_view what) {
  return absl::FailedPreconditionError(
      absl::StrCat("unit ", unit, ": part ", part, " ", what));
}

// Replicas hold all of a part, and have samples of their own.
absl::Status CheckReplicas(const Plan& plan, int u) {
  const int replicas = AxisSize(plan.mesh(), kReplicaAxis);
  const Share wanted = {.copies = replicas, .summed = replicas > 1};
  const Unit& unit = plan.units(u);
  for (int p = 0; p < unit.parts_size(); ++p) {
    Share said;
    for (const Unit::Part::Share& share : unit.parts(p).shares()) {
      if (share.axis() != kReplicaAxis) continue;
      said = {.copies = share.copies(), .summed = share.summed()};
    }
    if (said == wanted || unit.parts(p).elements() == 0) continue;
    return PartFault(
        u, p,
        absl::StrCat("says that along ", kReplicaAxis, " ranks have ",
                     Text(said), ", but they have ", Text(wanted)));
  }
  return absl::OkStatus();
}

// Parts of a unit lie in the same buffers, and their parameters are what ops
// read.
absl::Status CheckStates(const Plan& plan, int u) {
  const Unit& unit = plan.units(u);
  for (int p = 0; p < unit.parts_size(); ++p) {
    const Unit::Part& part = unit.parts(p);
    const Unit::Part& first = unit.parts(0);
    if (part.dtype() != first.dtype() ||
        part.gradient_dtype() != first.gradient_dtype() ||
        part.tiers().SerializeAsString() != first.tiers().SerializeAsString()) {
      return PartFault(u, p,
                       "has other types or tiers than part 0, with which it "
                       "shares buffers");
    }
    const Range range = RangeOfPart(unit, p);
    for (const Parameter& parameter : unit.parameters()) {
      if (parameter.offset() < range.begin || parameter.offset() >= range.end ||
          parameter.dtype() == part.dtype()) {
        continue;
      }
      return PartFault(u, p,
                       absl::StrCat("has type ", ElementType_Name(part.dtype()),
                                    ", but ", parameter.name(), " has ",
                                    ElementType_Name(parameter.dtype())));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckParts(const Plan& plan) {
  for (int u = 0; u < plan.units_size(); ++u) {
    RETURN_IF_ERROR(CheckReplicas(plan, u));
    RETURN_IF_ERROR(CheckStates(plan, u));
    if (!plan.units(u).has_table()) continue;
    for (const Axis& axis : plan.mesh().axes()) {
      if (!IsFactor(axis.name()) || axis.size() == 1) continue;
      RETURN_IF_ERROR(AxisCheck(plan, u, axis).Run());
    }
  }
  return absl::OkStatus();
}

}  // namespace troupe
