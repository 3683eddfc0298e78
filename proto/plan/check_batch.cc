#include "proto/plan/check_batch.h"

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/plan/batch.h"
#include "proto/plan/batch_sources.h"
#include "proto/plan/ops/op_rules.h"
#include "proto/plan/ports.h"
#include "proto/plan/replica_share.h"
#include "proto/plan/slices.h"

namespace troupe {
namespace {

// "BATCH 4 (along batch) x SEQUENCE 8".
std::string ShapeText(const TensorSpec& tensor) {
  std::string text;
  for (const Dim& dim : tensor.dims()) {
    const Dim::Section& section = dim.sections(0);
    absl::StrAppend(&text, text.empty() ? "" : " x ",
                    Dim::Kind_Name(section.kind()), " ", section.count());
    for (const Dim::Section::Cut& cut : section.cuts()) {
      absl::StrAppend(&text, " (", cut.rows() ? "rows " : "",
                      cut.zigzag() ? "in zigzag order " : "", "along ",
                      cut.axis(), ")");
    }
  }
  return text;
}

const Dim::Section* SectionOfKind(const TensorSpec& tensor, Dim::Kind kind) {
  for (const Dim& dim : tensor.dims()) {
    if (dim.sections(0).kind() == kind) return &dim.sections(0);
  }
  return nullptr;
}

bool SameCut(const Dim::Section::Cut& a, const Dim::Section::Cut& b) {
  return a.SerializeAsString() == b.SerializeAsString();
}

// Whether each rank's piece of `inner` is part of its piece of `outer`: all
// that cuts `outer` cuts `inner` first.
bool IsCutWithin(const Dim::Section& outer, const Dim::Section& inner) {
  if (outer.cuts_size() > inner.cuts_size()) return false;
  for (int c = 0; c < outer.cuts_size(); ++c) {
    if (!SameCut(outer.cuts(c), inner.cuts(c))) return false;
  }
  return true;
}

class BatchCheck {
 public:
  explicit BatchCheck(const Plan& plan) : plan_(plan) {}

  absl::Status Run() {
    for (const BatchTensor& one : plan_.batch()) {
      RETURN_IF_ERROR(CheckTensor(one));
    }
    std::set<int> tables;
    for (int u = 0; u < plan_.units_size(); ++u) {
      const Unit& unit = plan_.units(u);
      if (!unit.has_table() || !tables.insert(unit.table()).second) continue;
      RETURN_IF_ERROR(CheckReader(u));
    }
    for (const BatchTensor& one : plan_.batch()) {
      if (read_.count(one.tensor().name()) > 0) continue;
      return Fault(one, "is loaded, and no unit reads it");
    }
    for (int t = 0; t < plan_.tables_size(); ++t) {
      RETURN_IF_ERROR(CheckOps(t));
    }
    for (const BatchTensor& one : plan_.batch()) {
      RETURN_IF_ERROR(CheckSource(one));
    }
    return absl::OkStatus();
  }

 private:
  static absl::Status Fault(const BatchTensor& one, absl::string_view what) {
    return absl::FailedPreconditionError(
        absl::StrCat("tensor ", one.tensor().name(), " of the batch ", what));
  }

  // Samples, and behind them dims of one section.
  absl::Status CheckTensor(const BatchTensor& one) {
    const TensorSpec& tensor = one.tensor();
    if (tensor.name().empty() || !names_.insert(tensor.name()).second) {
      return Fault(one, "has no name of its own");
    }
    for (const Dim& dim : tensor.dims()) {
      if (dim.sections_size() == 1 && dim.sections(0).count() >= 1 &&
          dim.sections(0).width() == 1) {
        continue;
      }
      return Fault(one, "has a dim of several sections, or of none");
    }
    if (tensor.dims().empty() || tensor.row_alignment() > 0) {
      return Fault(one, "has no dims, or gaps behind its rows");
    }
    return CheckSamples(one);
  }

  absl::Status CheckSamples(const BatchTensor& one) const {
    const Dim::Section& samples = one.tensor().dims(0).sections(0);
    const int64_t due = MicroBatchSequences(plan_);
    if (samples.kind() != Dim::BATCH || WholeCount(samples) != due) {
      return Fault(one,
                   absl::StrCat("is ", ShapeText(one.tensor()), ", not of the ",
                                due, " samples of a micro-batch"));
    }
    for (const Dim::Section::Cut& cut : samples.cuts()) {
      if (cut.zigzag()) return Fault(one, "has samples in zigzag order");
    }
    return absl::OkStatus();
  }

  // There is such a source, and it makes such tensors.
  absl::Status CheckSource(const BatchTensor& one) const {
    const BatchSource* const source = FindBatchSource(one.source());
    if (source == nullptr) {
      return Fault(one, absl::StrCat("comes from ", one.source(),
                                     ", which is no source of the job's data; "
                                     "there are ",
                                     BatchSourceNames()));
    }
    if (!IsMadeBy(*source, one.tensor())) {
      return Fault(
          one,
          absl::StrCat("is ", ElementType_Name(one.tensor().dtype()), " ",
                       ShapeText(one.tensor()), ", which ", source->name,
                       " does not make of ",
                       plan_.job().training().sequence_length(), " positions"));
    }
    if (one.ahead() < 0 || (one.ahead() > 0 && !source->may_be_ahead)) {
      return Fault(
          one, absl::StrCat("is of ", one.ahead(), " places further, which ",
                            source->name, " cannot be"));
    }
    if (!source->needs_documents || plan_.job().data().isolate_documents()) {
      return absl::OkStatus();
    }
    return Fault(one,
                 "says where documents begin, though the job does not isolate "
                 "documents");
  }

  // Ranks may share the positions of what a sequence has, and of nothing else.
  bool IsMadeBy(const BatchSource& source, const TensorSpec& tensor) const {
    const auto& dims = source.dims;
    bool made = tensor.dtype() == source.dtype &&
                tensor.dims_size() == static_cast<int>(dims.size()) + 1;
    for (int d = 1; made && d < tensor.dims_size(); ++d) {
      const Dim::Section& section = tensor.dims(d).sections(0);
      made = section.kind() == dims[d - 1] &&
             WholeCount(section) == plan_.job().training().sequence_length() &&
             (section.kind() == Dim::SEQUENCE || section.cuts().empty());
    }
    return made;
  }

  // What a unit reads is loaded, and each rank has of it what is loaded there.
  absl::Status CheckReader(int unit) {
    const UnitTable& table = plan_.tables(plan_.units(unit).table());
    for (const int t : TensorsOfHome(table, TensorSpec::BATCH)) {
      const TensorSpec& read = table.tensors(t);
      const BatchTensor* const one =
          FindBatchTensor(plan_.batch(), read.name());
      if (one == nullptr) {
        return absl::FailedPreconditionError(
            absl::StrCat("unit ", unit, " reads ", read.name(),
                         " of the batch, which is not loaded"));
      }
      read_.insert(read.name());
      if (IsLoadedAs(one->tensor(), read)) continue;
      return absl::FailedPreconditionError(absl::StrCat(
          "unit ", unit, " reads ", read.name(), " of the batch as ",
          ShapeText(read), ", but it is loaded as ", ShapeText(one->tensor())));
    }
    return absl::OkStatus();
  }

  static bool IsLoadedAs(const TensorSpec& loaded, const TensorSpec& read) {
    if (loaded.dtype() != read.dtype() || read.row_alignment() > 0 ||
        loaded.dims_size() != read.dims_size() ||
        loaded.layout().SerializeAsString() !=
            read.layout().SerializeAsString()) {
      return false;
    }
    for (int d = 0; d < loaded.dims_size(); ++d) {
      if (loaded.dims(d).SerializeAsString() !=
          read.dims(d).SerializeAsString()) {
        return false;
      }
    }
    return true;
  }

  // An op that computes some rows on a rank finds the same of the batch there,
  // and of samples at least these.
  absl::Status CheckOps(int index) const {
    const UnitTable& table = plan_.tables(index);
    for (int o = 0; o < table.ops_size(); ++o) {
      const Op& op = table.ops(o);
      for (const Op::Operand& input : op.inputs()) {
        const TensorSpec& read = table.tensors(input.tensor());
        if (read.home() != TensorSpec::BATCH) continue;
        const TensorSpec* const rows = RowsOf({table, op});
        if (rows == nullptr || FitsRows(op, read, *rows)) continue;
        return absl::FailedPreconditionError(absl::StrCat(
            "table ", index, ": op ", o, " ", Op::Kind_Name(op.kind()),
            " computes rows ", ShapeText(*rows), ", but it reads ", read.name(),
            " of the batch as ", ShapeText(read)));
      }
    }
    return absl::OkStatus();
  }

  // Null: the op reads all that it gets.
  static const TensorSpec* RowsOf(const OpView& op) {
    const std::string name = RulesOf(op).batch_rows;
    if (name.empty()) return nullptr;
    return op.HasInput(name) ? &op.input(name) : &op.output(name);
  }

  static bool FitsRows(const Op& op, const TensorSpec& read,
                       const TensorSpec& rows) {
    const Dim::Section& loaded = read.dims(0).sections(0);
    const Dim::Section* const samples = SectionOfKind(rows, Dim::BATCH);
    if (samples == nullptr || !IsCutWithin(loaded, *samples)) return false;
    const Dim::Section* const positions = SectionOfKind(read, Dim::SEQUENCE);
    if (positions == nullptr) return true;
    const Dim::Section* const own = SectionOfKind(rows, Dim::SEQUENCE);
    if (own == nullptr || own->cuts_size() != positions->cuts_size() ||
        !IsCutWithin(*positions, *own)) {
      return false;
    }
    // A chunk has some of the rows.
    return op.has_chunk() || (WholeCount(loaded) == WholeCount(*samples) &&
                              positions->count() == own->count());
  }

  const Plan& plan_;
  std::set<std::string> names_;
  std::set<std::string> read_;
};

}  // namespace

absl::Status CheckBatch(const Plan& plan) { return BatchCheck(plan).Run(); }

}  // namespace troupe
