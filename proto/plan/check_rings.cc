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

// Kinds of ops that are one at each hop, each going on from the one before.
struct RingKind {
  Op::Kind kind;
  const char* moved;  // the input that goes around
  const char* goes_on[2];  // outputs, and inputs "... before" of the next
};
constexpr RingKind kRingKinds[] = {
    {Op::ATTENTION_PART, "kv", {"y", "logsumexp"}},
    {Op::SCORES, "k", {"y", nullptr}},
    {Op::WEIGHTED_VALUES, "v", {"y", nullptr}}};

class RingCheck {
 public:
  RingCheck(const Plan& plan, int index)
      : mesh_(plan.mesh()), table_(plan.tables(index)), index_(index) {}

  absl::Status Run() const {
    std::vector<OpRules> rules;
    for (int op = 0; op < table_.ops_size(); ++op) {
      rules.push_back(RulesOf(View(op)));
      if (table_.ops(op).kind() == Op::ATTENTION) {
        RETURN_IF_ERROR(CheckHasAllKeys(op));
      }
    }
    for (const RingKind& ring : kRingKinds) RETURN_IF_ERROR(CheckRing(ring));
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

  // A chain begins with the op that nothing is before.
  absl::Status CheckRing(const RingKind& ring) const {
    std::vector<int> chain;
    for (int op = 0; op < table_.ops_size(); ++op) {
      if (table_.ops(op).kind() != ring.kind) continue;
      if (!View(op).HasInput("y before") && !chain.empty()) {
        RETURN_IF_ERROR(CheckChain(ring, chain));
        chain.clear();
      }
      chain.push_back(op);
    }
    return chain.empty() ? absl::OkStatus() : CheckChain(ring, chain);
  }

  // In the order of ops.
  absl::Status CheckChain(const RingKind& ring,
                          const std::vector<int>& chain) const {
    const std::string& axis = table_.ops(chain[0]).hop().axis();
    const int ranks = AxisSize(mesh_, axis);
    if (static_cast<int>(chain.size()) != ranks) {
      return At(chain.back(),
                absl::StrCat("is the last of ", chain.size(),
                             " parts, but keys are on ", ranks,
                             " ranks along ", axis));
    }
    for (int hop = 0; hop < ranks; ++hop) {
      const int op = chain[hop];
      const Op::Hop& said = table_.ops(op).hop();
      const int shift = ShiftOf(View(op).input(ring.moved), axis);
      if (said.axis() != axis || said.number() != hop || shift != hop) {
        return At(op, absl::StrCat("takes the keys of ", shift,
                                   " ranks before for those of ",
                                   said.number(),
                                   " before, where those of ", hop, " are due"));
      }
      RETURN_IF_ERROR(CheckGoesOn(ring, op, hop == 0 ? -1 : chain[hop - 1]));
      if (ring.kind == Op::ATTENTION_PART) {
        RETURN_IF_ERROR(CheckZigzag(op, axis));
      } else {
        RETURN_IF_ERROR(CheckOneRun(ring, op));
      }
    }
    if (ring.kind != Op::ATTENTION_PART) return absl::OkStatus();
    const OpView last = View(chain.back());
    if (last.Output("y") == last.BackwardInput("all y") &&
        last.Output("logsumexp") == last.BackwardInput("all logsumexp")) {
      return absl::OkStatus();
    }
    return At(chain.back(), "is the last part, but does not make the whole");
  }

  // Columns of a hop are one run of keys.
  absl::Status CheckOneRun(const RingKind& ring, int op) const {
    for (const Dim::Section::Cut& cut : Positions(op, ring.moved).cuts()) {
      if (!cut.zigzag()) continue;
      return At(op, "has keys in zigzag order, which are not one run");
    }
    return absl::OkStatus();
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

  absl::Status CheckGoesOn(const RingKind& ring, int op, int before) const {
    bool goes_on = before < 0 || View(op).Input("q") == View(before).Input("q");
    for (const char* const output : ring.goes_on) {
      if (output == nullptr) continue;
      const int made = before < 0 ? -1 : View(before).Output(output);
      goes_on &= View(op).Input(absl::StrCat(output, " before")) == made;
    }
    if (goes_on) return absl::OkStatus();
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
    RETURN_IF_ERROR(RingCheck(plan, t).Run());
  }
  return absl::OkStatus();
}

}  // namespace troupe
