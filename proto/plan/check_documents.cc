#include "proto/plan/check_documents.h"

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/plan/batch.h"
#include "proto/plan/batch_sources.h"
#include "proto/plan/ops/op_view.h"

namespace troupe {
namespace {

// Whether what the op does with a token depends on where its document begins.
bool NeedsDocuments(const Op& op) {
  switch (op.kind()) {
    case Op::ATTENTION:
    case Op::ATTENTION_PART:
    case Op::SOFTMAX:
    case Op::ROPE:
      return true;
    case Op::EMBED:
      return op.parameters_size() > 1;  // a table of positions
    default:
      return false;
  }
}

class DocumentsCheck {
 public:
  DocumentsCheck(const Plan& plan, int index)
      : table_(plan.tables(index)),
        index_(index),
        batch_(plan.batch()),
        isolates_(plan.job().data().isolate_documents()) {}

  absl::Status Run() const {
    for (int op = 0; op < table_.ops_size(); ++op) {
      RETURN_IF_ERROR(CheckOp(op));
    }
    return absl::OkStatus();
  }

 private:
  bool SaysWhereTheyBegin(int tensor) const {
    const TensorSpec& spec = table_.tensors(tensor);
    if (spec.home() != TensorSpec::BATCH) return false;
    const BatchTensor* const loaded = FindBatchTensor(batch_, spec.name());
    return loaded != nullptr && loaded->source() == kDocumentStartsSource;
  }

  absl::Status CheckOp(int index) const {
    const Op& op = table_.ops(index);
    const int documents = OpView(table_, op).Input("documents");
    const bool needs = isolates_ && NeedsDocuments(op);
    if (needs == (documents >= 0) &&
        (!needs || SaysWhereTheyBegin(documents))) {
      return absl::OkStatus();
    }
    return Fault(absl::StrCat("op ", index, " ", Op::Kind_Name(op.kind()),
                              needs ? " does not read where documents begin"
                                    : " reads where documents begin, which it "
                                      "has no use for"));
  }

  absl::Status Fault(absl::string_view what) const {
    return absl::FailedPreconditionError(
        absl::StrCat("table ", index_, ": ", what));
  }

  const UnitTable& table_;
  const int index_;
  const BatchSchema& batch_;
  const bool isolates_;
};

}  // namespace

absl::Status CheckDocuments(const Plan& plan) {
  for (int t = 0; t < plan.tables_size(); ++t) {
    RETURN_IF_ERROR(DocumentsCheck(plan, t).Run());
  }
  return absl::OkStatus();
}

}  // namespace troupe
