#include "proto/plan/check_modules.h"

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/plan/batch.h"
#include "proto/plan/batch_sources.h"
#include "proto/plan/ops/op_view.h"

namespace troupe {
namespace {

absl::Status At(int unit, absl::string_view what) {
  return absl::FailedPreconditionError(
      absl::StrCat("unit ", unit, ": CROSS_ENTROPY ", what));
}

class ModulesCheck {
 public:
  explicit ModulesCheck(const Plan& plan)
      : plan_(plan), modules_(plan.job().model().num_nextn_predict_layers()) {}

  absl::Status Run() {
    for (int u = 0; u < plan_.units_size(); ++u) {
      RETURN_IF_ERROR(CheckUnit(u));
    }
    if (found_ != modules_) {
      return absl::FailedPreconditionError(
          absl::StrCat(found_,
                       " units add a loss to the model's, and the job has ",
                       modules_, " modules"));
    }
    return CheckTokens();
  }

 private:
  absl::Status CheckUnit(int u) {
    const Unit& unit = plan_.units(u);
    if (!unit.has_table()) return absl::OkStatus();
    const UnitTable& table = plan_.tables(unit.table());
    bool is_module = false;
    for (const Op& op : table.ops()) {
      if (op.kind() != Op::CROSS_ENTROPY) {
        if (op.added_weight() == 0) continue;
        return absl::FailedPreconditionError(
            absl::StrCat("unit ", u, ": ", Op::Kind_Name(op.kind()),
                         " is no loss, and is added to one"));
      }
      if (!is_module && op.added_weight() != 0) ++found_;
      is_module |= op.added_weight() != 0;
      RETURN_IF_ERROR(CheckLoss(u, OpView(table, op), is_module));
    }
    return absl::OkStatus();
  }

  absl::Status CheckLoss(int u, const OpView& loss, bool is_module) const {
    const double coefficient = plan_.job().model().mtp_coefficient();
    const double wanted =
        is_module && modules_ > 0 ? coefficient / modules_ : 0;
    if (loss.op().added_weight() != wanted) {
      return At(u, absl::StrCat("is added with a weight of ",
                                loss.op().added_weight(), ", not of ", wanted));
    }
    const BatchTensor* const targets =
        FindBatchTensor(plan_.batch(), loss.input("targets").name());
    const int ahead = targets != nullptr ? targets->ahead() : 0;
    if (ahead == (is_module ? found_ : 0)) return absl::OkStatus();
    return At(u, absl::StrCat("is of targets ", ahead, " places further, not ",
                              is_module ? found_ : 0));
  }

  absl::Status CheckTokens() const {
    std::set<int> ahead;
    for (const BatchTensor& one : plan_.batch()) {
      if (one.source() == kTokensSource && one.ahead() > 0) {
        ahead.insert(one.ahead());
      }
    }
    for (int k = 1; k <= modules_; ++k) {
      if (ahead.erase(k) > 0) continue;
      return absl::FailedPreconditionError(absl::StrCat(
          "module ", k, " has no tokens ", k, " places further in the batch"));
    }
    if (ahead.empty()) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat("tokens ", *ahead.begin(),
                     " places further are loaded, and no module reads them"));
  }

  const Plan& plan_;
  const int modules_;
  int found_ = 0;
};

}  // namespace

absl::Status CheckModules(const Plan& plan) { return ModulesCheck(plan).Run(); }

}  // namespace troupe
