#include "proto/plan/check_rings.h"

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/plan/made_again.h"
#include "proto/plan/mesh.h"
#include "proto/plan/ops/op_rules.h"
#include "proto/plan/slices.h"

namespace troupe {
namespace {

class TableCheck {
 public:
  TableCheck(const Plan& plan, int index)
      : mesh_(plan.mesh()), table_(plan.tables(index)), index_(index) {}

  absl::Status Run() const {
    std::map<int, std::vector<int>> chains;  // by "all y"
    std::vector<OpRules> rules;
    for (int op = 0; op < table_.ops_size(); ++op) {
      rules.push_back(RulesOf(View(op)));
      if (table_.ops(op).kind() == Op::ATTENTION) {
        RETURN_IF_ERROR(CheckHasAllKeys(op));
      }
      if (table_.ops(op).kind() != Op::ATTENTION_PART) continue;
      chains[View(op).BackwardInput("all y")].push_back(op);
    }
    for (const auto& [y, parts] : chains) {
      RETURN_IF_ERROR(CheckChain(parts));
    }
    return CheckReturns(ReadByBackward(table_, rules));
  }

 private:
  OpView View(int op) const { return {table_, table_.ops(op)}; }

  const Dim::Section& Positions(int op, absl::string_view input) const {
    return View(op).input(input).dims(1).sections(0);
  }

  absl::Status CheckHasAllKeys(int op) const {
    if (Positions(op, "qkv").cuts().empty()) return absl::OkStatus();
    return At(op, "has the keys of some positions only");
  }

  // Parts of one attention, in the order of ops.
  absl::Status CheckChain(const std::vector<int>& parts) const {
    const std::string& axis =
        table_.ops(parts[0]).attention_part().axis();
    const int ranks = AxisSize(mesh_, axis);
    if (static_cast<int>(parts.size()) != ranks) {
      return At(parts.back(),
                absl::StrCat("is the last of ", parts.size(),
                             " parts, but keys are on ", ranks,
                             " ranks along ", axis));
    }
    for (int hop = 0; hop < ranks; ++hop) {
      const int op = parts[hop];
      const Op::AttentionPart& part = table_.ops(op).attention_part();
      const int shift = ShiftOf(View(op).input("kv"), axis);
      if (part.axis() != axis || part.hop() != hop || shift != hop) {
        return At(op, absl::StrCat("takes the keys of ", shift,
                                   " ranks before for those of ", part.hop(),
                                   " before, where those of ", hop, " are due"));
      }
      RETURN_IF_ERROR(CheckZigzag(op, axis));
      RETURN_IF_ERROR(CheckGoesOn(op, hop == 0 ? -1 : parts[hop - 1]));
    }
    const OpView last = View(parts.back());
    if (last.Output("y") == last.BackwardInput("all y") &&
        last.Output("logsumexp") == last.BackwardInput("all logsumexp")) {
      return absl::OkStatus();
    }
    return At(parts.back(), "is the last part, but does not make the whole");
  }

  // Queries are the rank's own; keys lie as they do.
  absl::Status CheckZigzag(int op, const std::string& axis) const {
    const Dim::Section& queries = Positions(op, "q");
    const Dim::Section::Cut* const cut = CutBy(queries, axis);
    const bool right = cut != nullptr && cut->zigzag() &&
                       cut->whole() % (2 * AxisSize(mesh_, axis)) == 0 &&
                       ShiftOf(View(op).input("q"), axis) == 0 &&
                       queries.SerializeAsString() ==
                           Positions(op, "kv").SerializeAsString();
    if (right) return absl::OkStatus();
    return At(op, absl::StrCat("has queries and keys that are not both cut in "
                               "zigzag order along ",
                               axis));
  }

  absl::Status CheckGoesOn(int op, int before) const {
    const int y = before < 0 ? -1 : View(before).Output("y");
    const int logsumexp = before < 0 ? -1 : View(before).Output("logsumexp");
    const bool same_queries =
        before < 0 || View(op).Input("q") == View(before).Input("q");
    if (View(op).Input("y before") == y && same_queries &&
        View(op).Input("logsumexp before") == logsumexp) {
      return absl::OkStatus();
    }
    return At(op, "does not go on from the part before");
  }

  absl::Status CheckReturns(const std::vector<bool>& read) const {
    std::map<int, int> by;  // tensor
    for (int op = 0; op < table_.ops_size(); ++op) {
      if (table_.ops(op).kind() != Op::RETURN) continue;
      const int back = table_.ops(op).inputs(0).tensor();
      const int from = table_.ops(op).inputs(1).tensor();
      if (!by.emplace(back, op).second) {
        return At(op, absl::StrCat("brings back ", NameOf(back),
                                   ", as another op does"));
      }
      if (read[back] && read[from] && by.count(from) == 0) continue;
      return At(op, absl::StrCat("brings back ", NameOf(back), " from ",
                                 NameOf(from), ", which is not there"));
    }
    return absl::OkStatus();
  }

  static int ShiftOf(const TensorSpec& tensor, const std::string& axis) {
    for (const Layout::AxisLayout& of : tensor.layout().axes()) {
      if (of.axis() == axis) return of.shift();
    }
    return -1;
  }

  const std::string& NameOf(int tensor) const {
    return table_.tensors(tensor).name();
  }

  absl::Status At(int op, absl::string_view what) const {
    return absl::FailedPreconditionError(
        absl::StrCat("table ", index_, ": op ", op, " ",
                     Op::Kind_Name(table_.ops(op).kind()), " ", what));
  }

  const Mesh& mesh_;
  const UnitTable& table_;
  const int index_;
};

}  // namespace

absl::Status CheckRings(const Plan& plan) {
  for (int t = 0; t < plan.tables_size(); ++t) {
    RETURN_IF_ERROR(TableCheck(plan, t).Run());
  }
  return absl::OkStatus();
}

}  // namespace troupe
