#include "proto/plan/graph/op_writer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/base/one_line.h"
#include "proto/base/status.h"
#include "proto/plan/model_fields.h"
#include "proto/plan/tensor_spec.h"

namespace troupe {
namespace {

constexpr size_t kNameMax = 256;
// Of any tensor, and of any parameter's two dims.
constexpr int64_t kColumnsMax = 16 * int64_t{kModelWidthMax};
constexpr int kSectionsMax = 16;
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

std::string Quoted(absl::string_view name) {
  return absl::StrCat("\"", OneLine(name, kNameMax), "\"");
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

}  // namespace

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
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) {
    return Error(absl::StrCat("reads tensor ", Quoted(name),
                              ", which no op before it makes"));
  }
  ++reads_[found->second];
  read_names_.insert(name);
  return found->second;
}

absl::Status OpWriter::Make(const std::string& name, int tensor) {
  if (name.empty() || absl::StrContains(name, ':') ||
      !IsOneLine(name, kNameMax)) {
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
    if (name.empty() || !IsOneLine(name, kNameMax)) {
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
  if (columns.empty() || columns.size() > kSectionsMax) {
    return Error(absl::StrCat("has a weight of ", columns.size(),
                              " columns { ... }; use 1 to ", kSectionsMax));
  }
  Dim dim;
  int64_t all = 0;
  for (const GraphColumns& of : columns) {
    const int64_t width = of.has_width() ? of.width() : 1;
    if (of.count() < 1 || width < 1 || of.count() > kColumnsMax / width ||
        !GraphColumns::Kind_IsValid(of.kind())) {
      return Error(absl::StrCat(
          "has columns of count ", of.count(), " and width ", width,
          "; use at least 1 of each, and at most ", kColumnsMax, " in all"));
    }
    all += of.count() * width;
    Dim::Section& section = *dim.add_sections();
    section.set_kind(KindOf(of.kind()));
    section.set_count(of.count());
    section.set_width(width);
  }
  if (all <= kColumnsMax) return dim;
  return Error(
      absl::StrCat("has ", all, " columns; use at most ", kColumnsMax));
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

absl::Status OpWriter::WriteEmbed(const GraphOp::Embed& op) {
  if (op.hidden() < 1 || op.hidden() > kModelWidthMax) {
    return Error(absl::StrCat("has hidden ", op.hidden(), "; use 1 to ",
                              kModelWidthMax));
  }
  RETURN_IF_ERROR(CheckInit(op.init_std()));
  RETURN_IF_ERROR(NameParameters({op.tokens()}, {""}));
  names_.embeddings[op.tokens()] = index_;
  if (!op.positions().empty()) {
    RETURN_IF_ERROR(NameParameters({op.positions()}, {""}));
  }
  return Make(
      op.y(),
      builder_.Embed({.tokens = op.tokens(),
                      .positions = op.positions(),
                      .vocabulary = text_.graph.vocab_size(),
                      .positions_max = text_.graph.max_position_embeddings(),
                      .hidden = DimOf({{Dim::HIDDEN, op.hidden()}}),
                      .init_std = op.init_std()}));
}

absl::Status OpWriter::WriteDropout(const GraphOp::Dropout& op) {
  ASSIGN_OR_RETURN(const int x, Read(op.x()));
  const int y = builder_.Dropout(x);
  if (y != x) return Make(op.y(), y);
  // Without dropout it is x, whose own readers count.
  --reads_[x];
  const std::string name = builder_.table().tensors(x).name();
  RETURN_IF_ERROR(Make(op.y(), y));
  builder_.Name(x, name);
  return absl::OkStatus();
}

absl::Status OpWriter::WriteNorm(const GraphOp::Norm& op) {
  ASSIGN_OR_RETURN(const int x, Read(op.x()));
  int residual = -1;
  if (!op.residual().empty()) {
    ASSIGN_OR_RETURN(residual, Read(op.residual()));
  }
  if (!IsHidden(x)) {
    return Error(absl::StrCat("reads ", Quoted(op.x()), ", whose columns are ",
                              DimText(Columns(x)), "; it needs HIDDEN"));
  }
  if (residual >= 0 && DimText(Columns(x)) != DimText(Columns(residual))) {
    return Error(absl::StrCat(
        "adds ", Quoted(op.x()), " of ", DimText(Columns(x)), " columns and ",
        Quoted(op.residual()), " of ", DimText(Columns(residual))));
  }
  if (residual == x) {
    return Error("reads one tensor as x and as residual; use an add");
  }
  if (op.sum().empty() != (residual < 0)) {
    return Error(
        "needs residual and sum together: the sum of x and residual, "
        "for others to read");
  }
  RETURN_IF_ERROR(CheckEpsilon(op.epsilon()));
  RETURN_IF_ERROR(
      op.root_mean_square()
          ? NameParameters({op.parameters()}, {".weight"})
          : NameParameters({op.parameters()}, {".weight", ".bias"}));
  const auto [y, sum] =
      builder_.Norm({.x = x,
                     .residual = residual,
                     .name = op.parameters(),
                     .output = op.y(),
                     .root_mean_square = op.root_mean_square(),
                     .epsilon = op.epsilon()});
  RETURN_IF_ERROR(Make(op.y(), y));
  return residual < 0 ? absl::OkStatus() : Make(op.sum(), sum);
}

absl::Status OpWriter::WriteLinear(const GraphOp::Linear& op) {
  ASSIGN_OR_RETURN(const int x, Read(op.x()));
  if (Columns(x).sections_size() != 1) {
    return Error(absl::StrCat("reads ", Quoted(op.x()), ", whose columns are ",
                              DimText(Columns(x)),
                              "; it needs columns of one kind"));
  }
  if (op.weight().empty()) {
    return Error("has no weight { ... }");
  }
  RETURN_IF_ERROR(CheckInit(op.init_std()));
  std::vector<UnitBuilder::Projection> projections;
  std::vector<std::string> names;
  int64_t all = 0;
  for (const GraphOp::Linear::Weight& weight : op.weight()) {
    ASSIGN_OR_RETURN(Dim columns, ColumnsOf(weight.columns()));
    all += DimSize(columns);
    names.push_back(weight.parameters());
    projections.push_back({.name = weight.parameters(),
                           .out = std::move(columns),
                           .within = weight.within()});
  }
  const UnitBuilder::Projection& first = projections.front();
  const bool alike = std::all_of(
      projections.begin(), projections.end(), [&](const auto& projection) {
        return projection.within == first.within &&
               (first.within.empty() ||
                (projection.out.sections_size() == 1 &&
                 DimSize(projection.out) == DimSize(first.out) &&
                 projection.out.sections(0).width() ==
                     first.out.sections(0).width()));
      });
  if (!alike || (op.in_out() && !first.within.empty())) {
    return Error(
        "has weights within others: all are of one, with equal "
        "columns of one kind, and not in_out");
  }
  int64_t sections = 0;
  for (const auto& projection : projections) {
    sections += projection.out.sections_size();
  }
  if (all > kColumnsMax || sections > kSectionsMax) {
    return Error(absl::StrCat("makes ", all, " columns in ", sections,
                              " parts; use at most ", kColumnsMax, " in ",
                              kSectionsMax));
  }
  RETURN_IF_ERROR(op.bias() ? NameParameters(names, {".weight", ".bias"})
                            : NameParameters(names, {".weight"}));
  return Make(op.y(), builder_.Linear({.x = x,
                                       .projections = std::move(projections),
                                       .output = op.y(),
                                       .in_out = op.in_out(),
                                       .bias = op.bias(),
                                       .init_std = op.init_std()}));
}

absl::StatusOr<Rope> OpWriter::TurnOf(const GraphOp::Rope::Turn& turn,
                                      int64_t head_columns) const {
  Rope rope;
  rope.attention_factor = turn.has_factor() ? turn.factor() : 1;
  rope.inverse_frequencies = {turn.frequency().begin(), turn.frequency().end()};
  if (turn.has_theta() != turn.has_columns() ||
      turn.has_theta() == !turn.frequency().empty()) {
    return Error(
        "needs theta and columns, or a frequency for each two columns "
        "of a head that turn");
  }
  const int64_t columns =
      turn.has_columns() ? turn.columns() : 2 * int64_t{turn.frequency_size()};
  if (columns < 2 || columns % 2 != 0 || columns > head_columns) {
    return Error(absl::StrCat("turns ", columns, " columns of each head; use ",
                              "an even number of at most ", head_columns));
  }
  for (int64_t i = 0; turn.has_theta() && i < columns / 2; ++i) {
    rope.inverse_frequencies.push_back(
        std::pow(turn.theta(),
                 -2.0 * static_cast<double>(i) / static_cast<double>(columns)));
  }
  bool finite = std::isfinite(rope.attention_factor);
  for (const double frequency : rope.inverse_frequencies) {
    finite &= std::isfinite(frequency);
  }
  if (finite) return rope;
  return Error("has a factor or a frequency that is no number");
}

absl::Status OpWriter::WriteRope(const GraphOp::Rope& op) {
  ASSIGN_OR_RETURN(const int x, Read(op.x()));
  RETURN_IF_ERROR(CheckHeads(op.x(), x));
  const int64_t width = Columns(x).sections(0).width();
  ASSIGN_OR_RETURN(Rope training, TurnOf(op.training(), width));
  Rope decoding = training;
  if (op.has_decoding()) {
    ASSIGN_OR_RETURN(decoding, TurnOf(op.decoding(), width));
  }
  if (decoding.inverse_frequencies.size() !=
      training.inverse_frequencies.size()) {
    return Error("turns other columns when decoding");
  }
  turned_.emplace(x, static_cast<int>(at_));
  return Make(op.y(), builder_.Rope({.x = x,
                                     .training = std::move(training),
                                     .decoding = std::move(decoding)}));
}

absl::Status OpWriter::WriteHeadNorm(const GraphOp::HeadNorm& op) {
  ASSIGN_OR_RETURN(const int x, Read(op.x()));
  RETURN_IF_ERROR(CheckHeads(op.x(), x));
  RETURN_IF_ERROR(CheckEpsilon(op.epsilon()));
  RETURN_IF_ERROR(NameParameters({op.queries(), op.keys()}, {".weight"}));
  return Make(op.y(), builder_.HeadNorm({.x = x,
                                         .queries = op.queries(),
                                         .keys = op.keys(),
                                         .epsilon = op.epsilon()}));
}

absl::Status OpWriter::WriteAttention(const GraphOp::Attention& op) {
  ASSIGN_OR_RETURN(const int x, Read(op.x()));
  RETURN_IF_ERROR(CheckHeads(op.x(), x));
  return Make(op.y(), builder_.Attention(x));
}

absl::Status OpWriter::WriteGelu(const GraphOp::Gelu& op) {
  ASSIGN_OR_RETURN(const int x, Read(op.x()));
  return Make(op.y(), builder_.Gelu(x, op.exact()));
}

absl::Status OpWriter::WriteSwiGlu(const GraphOp::SwiGlu& op) {
  ASSIGN_OR_RETURN(const int x, Read(op.x()));
  const Dim& columns = Columns(x);
  const bool right = columns.sections_size() == 2 &&
                     columns.sections(0).SerializeAsString() ==
                         columns.sections(1).SerializeAsString();
  if (!right) {
    return Error(absl::StrCat("reads ", Quoted(op.x()), ", whose columns are ",
                              DimText(columns),
                              "; it needs two equal parts, gate and up"));
  }
  return Make(op.y(), builder_.SwiGlu(x));
}

absl::Status OpWriter::WriteAdd(const GraphOp::Add& op) {
  ASSIGN_OR_RETURN(const int x, Read(op.x()));
  ASSIGN_OR_RETURN(const int residual, Read(op.residual()));
  if (DimText(Columns(x)) != DimText(Columns(residual))) {
    return Error(absl::StrCat(
        "adds ", Quoted(op.x()), " of ", DimText(Columns(x)), " columns and ",
        Quoted(op.residual()), " of ", DimText(Columns(residual))));
  }
  return Make(op.y(), builder_.Add({.x = x, .residual = residual}));
}

absl::Status OpWriter::WriteLoss(const GraphOp::Loss& op) {
  ASSIGN_OR_RETURN(const int x, Read(op.x()));
  if (!IsHidden(x)) {
    return Error(absl::StrCat("reads ", Quoted(op.x()), ", whose columns are ",
                              DimText(Columns(x)), "; it needs HIDDEN"));
  }
  if (names_.losses++ > 0) {
    return Error("is the model's second; a model has one loss");
  }
  if (op.weight().empty() == op.tied_to().empty()) {
    return Error("needs either weight or tied_to");
  }
  int tied_unit = 0;
  if (op.tied_to().empty()) {
    RETURN_IF_ERROR(CheckInit(op.init_std()));
    RETURN_IF_ERROR(NameParameters({op.weight()}, {""}));
  } else {
    const auto found = names_.embeddings.find(op.tied_to());
    if (found == names_.embeddings.end() || found->second == index_) {
      return Error(absl::StrCat("is tied to ", Quoted(op.tied_to()),
                                ", which is no tokens of an embed in a unit "
                                "before it"));
    }
    tied_unit = found->second;
  }
  builder_.Loss({.x = x,
                 .weight = op.weight(),
                 .tied_to = op.tied_to(),
                 .tied_unit = tied_unit,
                 .vocabulary = text_.graph.vocab_size(),
                 .init_std = op.init_std()});
  return absl::OkStatus();
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
