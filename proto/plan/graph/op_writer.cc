#include "proto/plan/graph/op_writer.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/base/one_line.h"
#include "proto/base/status.h"
#include "proto/plan/graph/graph_batch.h"
#include "proto/plan/ports.h"
#include "proto/plan/tensor_spec.h"

namespace troupe {
namespace {

// Sites of the random initial values of a unit's parameters.
constexpr int kParametersMax = 64;

Dim::Kind KindOf(GraphColumns::Kind kind) {
  switch (kind) {
    case GraphColumns::HEADS:
      return Dim::HEADS;
    case GraphColumns::KEY_VALUE_HEADS:
      return Dim::KEY_VALUE_HEADS;
    case GraphColumns::INTERMEDIATE:
      return Dim::INTERMEDIATE;
    default:
      return Dim::HIDDEN;
  }
}

}  // namespace

std::string Quoted(absl::string_view name) {
  return absl::StrCat("\"", OneLine(name, kGraphNameMax), "\"");
}

std::string DimText(const Dim& dim) {
  std::string text;
  for (const Dim::Section& section : dim.sections()) {
    absl::StrAppend(&text, text.empty() ? "" : " | ",
                    Dim::Kind_Name(section.kind()), " ", section.count());
    if (section.width() != 1) absl::StrAppend(&text, " x ", section.width());
  }
  return text;
}

absl::Status OpWriter::Error(absl::string_view what) const {
  const GraphOp& op = unit_.ops[at_];
  return text_.Error(unit_.lines[at_],
                     absl::StrCat(OpWords(op, unit_), " ", what));
}

const Dim& OpWriter::Columns(int tensor) const {
  const TensorSpec& spec = builder_.table().tensors(tensor);
  return spec.dims(spec.dims_size() - 1);
}

bool OpWriter::IsHidden(int tensor) const {
  const Dim& columns = Columns(tensor);
  return columns.sections_size() == 1 &&
         columns.sections(0).kind() == Dim::HIDDEN;
}

absl::StatusOr<int> OpWriter::Read(const std::string& name) {
  if (absl::StartsWith(name, kBatchPrefix)) {
    return Error(absl::StrCat("reads ", Quoted(name),
                              " of the batch; only an embed reads it so, which "
                              "makes rows of ids"));
  }
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) {
    return Error(absl::StrCat("reads tensor ", Quoted(name),
                              ", which no op before it makes"));
  }
  ++reads_[found->second];
  read_names_.insert(name);
  return found->second;
}

absl::StatusOr<OpWriter::OfBatch> OpWriter::ReadBatch(
    const std::string& text, absl::string_view otherwise) {
  const std::string read =
      text.empty() ? absl::StrCat(kBatchPrefix, otherwise) : text;
  if (!absl::StartsWith(read, kBatchPrefix)) {
    return Error(absl::StrCat("reads ", Quoted(read),
                              ", where it needs a tensor of the batch, as \"",
                              kBatchPrefix, otherwise, "\""));
  }
  const std::string name = read.substr(absl::string_view(kBatchPrefix).size());
  const BatchTensor* const tensor = FindBatchTensor(names_.batch, name);
  if (tensor == nullptr) {
    return Error(
        absl::StrCat("reads ", Quoted(read),
                     ", which no batch { ... } of the graph declares"));
  }
  // Where documents begin may be read beside these.
  constexpr size_t kReadMax = kPortsMax - 1;
  batch_read_.insert(name);
  if (batch_read_.size() > kReadMax) {
    return Error(absl::StrCat("reads ", Quoted(read), ", but a unit reads at ",
                              "most ", kReadMax,
                              " tensors of the batch; make it two"));
  }
  names_.batch_read.insert(name);
  return OfBatch{.tensor = tensor,
                 .elements = FindBatchSource(tensor->source())->elements};
}

absl::Status OpWriter::Make(const std::string& name, int tensor) {
  if (name.empty() || absl::StrContains(name, ':') ||
      !IsOneLine(name, kGraphNameMax)) {
    return Error(absl::StrCat("makes ", Quoted(name),
                              ": a tensor needs a name, without a colon"));
  }
  const Made made = {.tensor = tensor,
                     .line = unit_.lines[at_],
                     .op = OpWords(unit_.ops[at_], unit_)};
  if (!made_.emplace(name, made).second) {
    return Error(absl::StrCat("makes tensor ", Quoted(name),
                              ", which is there already"));
  }
  tensors_[name] = tensor;
  builder_.Name(tensor, name);
  return absl::OkStatus();
}

absl::Status OpWriter::CheckEpsilon(double epsilon) const {
  if (epsilon > 0 && epsilon <= 1) return absl::OkStatus();
  return Error(absl::StrCat("has epsilon ", epsilon,
                            "; use one above 0, as 1e-5, and at most 1"));
}

absl::Status OpWriter::CheckInit(double init_std) const {
  if (init_std >= 0 && init_std <= 100) return absl::OkStatus();
  return Error(
      absl::StrCat("has init_std ", init_std, "; use 0 to 100, as 0.02"));
}

absl::Status OpWriter::NameParameters(
    const std::vector<std::string>& names,
    const std::vector<const char*>& suffixes) {
  const size_t more = names.size() * suffixes.size();
  if (builder_.unit().parameters_size() + more > kParametersMax) {
    return Error(absl::StrCat("is one too many: a unit has at most ",
                              kParametersMax, " parameters; make it two"));
  }
  for (const std::string& name : names) {
    if (name.empty() || !IsOneLine(name, kGraphNameMax)) {
      return Error(absl::StrCat("has parameters named ", Quoted(name),
                                ", which is no name"));
    }
    for (const char* const suffix : suffixes) {
      const std::string full = absl::StrCat(name, suffix);
      if (names_.parameters.insert(full).second) continue;
      return Error(absl::StrCat("has parameter ", Quoted(full),
                                ", which the model has already"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Dim> OpWriter::ColumnsOf(
    const google::protobuf::RepeatedPtrField<GraphColumns>& columns) const {
  if (columns.empty() || columns.size() > kGraphSectionsMax) {
    return Error(absl::StrCat("has a weight of ", columns.size(),
                              " columns { ... }; use 1 to ",
                              kGraphSectionsMax));
  }
  Dim dim;
  int64_t all = 0;
  for (const GraphColumns& of : columns) {
    const int64_t width = of.has_width() ? of.width() : 1;
    if (of.count() < 1 || width < 1 || of.count() > kGraphColumnsMax / width ||
        !GraphColumns::Kind_IsValid(of.kind())) {
      return Error(absl::StrCat("has columns of count ", of.count(),
                                " and width ", width,
                                "; use at least 1 of each, and at most ",
                                kGraphColumnsMax, " in all"));
    }
    all += of.count() * width;
    Dim::Section& section = *dim.add_sections();
    section.set_kind(KindOf(of.kind()));
    section.set_count(of.count());
    section.set_width(width);
  }
  if (all <= kGraphColumnsMax) return dim;
  return Error(
      absl::StrCat("has ", all, " columns; use at most ", kGraphColumnsMax));
}

absl::Status OpWriter::CheckHeads(const std::string& name, int tensor) const {
  const Dim& columns = Columns(tensor);
  const auto& sections = columns.sections();
  const bool right = sections.size() == 3 && sections[0].kind() == Dim::HEADS &&
                     sections[1].kind() == Dim::KEY_VALUE_HEADS &&
                     sections[2].kind() == Dim::KEY_VALUE_HEADS &&
                     sections[1].count() == sections[2].count() &&
                     sections[0].count() % sections[1].count() == 0 &&
                     sections[0].width() == sections[1].width() &&
                     sections[1].width() == sections[2].width();
  if (right) return absl::OkStatus();
  return Error(absl::StrCat(
      "reads ", Quoted(name), ", whose columns are ", DimText(columns),
      "; it needs HEADS | KEY_VALUE_HEADS | KEY_VALUE_HEADS of one width, and "
      "a multiple of the latter as HEADS"));
}

absl::Status OpWriter::Run() {
  for (at_ = 0; at_ < unit_.ops.size(); ++at_) {
    RETURN_IF_ERROR(Write(unit_.ops[at_]));
  }
  return absl::OkStatus();
}

absl::Status OpWriter::Write(const GraphOp& op) {
  switch (op.kind_case()) {
    case GraphOp::kEmbed:
      return WriteEmbed(op.embed());
    case GraphOp::kDropout:
      return WriteDropout(op.dropout());
    case GraphOp::kNorm:
      return WriteNorm(op.norm());
    case GraphOp::kLinear:
      return WriteLinear(op.linear());
    case GraphOp::kRope:
      return WriteRope(op.rope());
    case GraphOp::kHeadNorm:
      return WriteHeadNorm(op.head_norm());
    case GraphOp::kAttention:
      return WriteAttention(op.attention());
    case GraphOp::kGelu:
      return WriteGelu(op.gelu());
    case GraphOp::kSwiglu:
      return WriteSwiGlu(op.swiglu());
    case GraphOp::kAdd:
      return WriteAdd(op.add());
    case GraphOp::kLoss:
      return WriteLoss(op.loss());
    default:
      return text_.Error(unit_.lines[at_],
                         absl::StrCat("an op of unit ", unit_.name,
                                      " is empty; name one, as norm { ... }"));
  }
}

absl::StatusOr<int> OpWriter::Export(const GraphExport& wanted) {
  const auto found = made_.find(wanted.tensor);
  if (found == made_.end()) {
    return text_.Error(
        wanted.line,
        absl::StrCat("an op reads tensor ", Quoted(wanted.tensor), " of unit ",
                     unit_.name, ", which no op of that unit makes"));
  }
  const int tensor = found->second.tensor;
  if (builder_.table().tensors(tensor).home() == TensorSpec::INPUT) {
    return text_.Error(
        wanted.line,
        absl::StrCat("an op reads tensor ", Quoted(wanted.tensor), " of unit ",
                     unit_.name,
                     ", which is what that unit reads itself, as there is no "
                     "dropout; read the unit that makes it"));
  }
  read_names_.insert(wanted.tensor);
  ++reads_[tensor];
  return tensor;
}

absl::Status OpWriter::CheckRead() const {
  for (const auto& [name, made] : made_) {
    if (read_names_.count(name) > 0) continue;
    return text_.Error(made.line,
                       absl::StrCat(made.op, " makes tensor ", Quoted(name),
                                    ", which nobody reads"));
  }
  for (const auto& [tensor, op] : turned_) {
    const bool own =
        builder_.table().tensors(tensor).home() == TensorSpec::WITHIN;
    if (own && reads_.at(tensor) == 1) continue;
    return text_.Error(
        unit_.lines[op],
        absl::StrCat(OpWords(unit_.ops[op], unit_), " turns in place what ",
                     own ? "others read, too"
                         : "another unit makes; put the op that makes it into "
                           "this unit"));
  }
  return absl::OkStatus();
}

}  // namespace troupe
