#include "proto/plan/check_documents.h"

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/plan/ops/op_view.h"
#include "proto/plan/tensor_spec.h"

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
        isolates_(plan.job().data().isolate_documents()),
        length_(plan.job().training().sequence_length()),
        batch_(BatchOf(plan)) {}

  absl::Status Run() const {
    for (const TensorSpec& tensor : table_.tensors()) {
      if (tensor.home() != TensorSpec::DOCUMENTS) continue;
      RETURN_IF_ERROR(CheckTensor(tensor));
    }
    for (int op = 0; op < table_.ops_size(); ++op) {
      RETURN_IF_ERROR(CheckOp(op));
    }
    return absl::OkStatus();
  }

 private:
  // The dim of samples of what is loaded, which all units load alike.
  static const Dim* BatchOf(const Plan& plan) {
    for (const UnitTable& table : plan.tables()) {
      for (const TensorSpec& tensor : table.tensors()) {
        if (tensor.home() == TensorSpec::TOKENS ||
            tensor.home() == TensorSpec::TARGETS) {
          return &tensor.dims(0);
        }
      }
    }
    return nullptr;
  }

  absl::Status CheckTensor(const TensorSpec& tensor) const {
    if (!isolates_) {
      return Fault(absl::StrCat("has ", tensor.name(),
                                ", though the job does not isolate documents"));
    }
    if (tensor.dtype() != I32 || tensor.dims_size() != 2 || batch_ == nullptr ||
        tensor.dims(0).SerializeAsString() != batch_->SerializeAsString()) {
      return Fault(absl::StrCat(tensor.name(),
                                " is not of the samples whose tokens are "
                                "loaded"));
    }
    const Dim::Section& positions = tensor.dims(1).sections(0);
    if (tensor.dims(1).sections_size() == 1 && positions.cuts().empty() &&
        DimSize(tensor.dims(1)) == length_) {
      return absl::OkStatus();
    }
    return Fault(absl::StrCat(tensor.name(), " is not of all ", length_,
                              " positions of a sequence"));
  }

  absl::Status CheckOp(int index) const {
    const Op& op = table_.ops(index);
    const int documents = OpView(table_, op).Input("documents");
    const bool needs = isolates_ && NeedsDocuments(op);
    if (needs == (documents >= 0) &&
        (!needs || table_.tensors(documents).home() == TensorSpec::DOCUMENTS)) {
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
  const bool isolates_;
  const int64_t length_;
  const Dim* const batch_;
};

}  // namespace

absl::Status CheckDocuments(const Plan& plan) {
  for (int t = 0; t < plan.tables_size(); ++t) {
    RETURN_IF_ERROR(DocumentsCheck(plan, t).Run());
  }
  return absl::OkStatus();
}

}  // namespace troupe
