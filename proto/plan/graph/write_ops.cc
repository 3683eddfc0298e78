// Each kind of op of a model graph: what it needs, and what it becomes.
#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/plan/graph/op_writer.h"
#include "proto/plan/tensor_spec.h"

namespace troupe {

absl::Status OpWriter::WriteEmbed(const GraphOp::Embed& op) {
  ASSIGN_OR_RETURN(const OfBatch ids, ReadBatch(op.x(), kBatchTokens));
  int64_t ids_below = 0;
  switch (ids.elements) {
    case BatchElements::kTokens:
      ids_below = text_.graph.vocab_size();
      break;
    case BatchElements::kPositions:
      ids_below = text_.graph.max_position_embeddings();
      break;
    default:
      return Error(absl::StrCat(
          "reads ", Quoted(op.x()), " of source ", ids.tensor->source(),
          ", which are no numbers of rows; use one of tokens or positions"));
  }
  const int64_t rows = op.has_rows() ? op.rows() : ids_below;
  if (rows < ids_below || rows > kGraphRowsMax) {
    return Error(absl::StrCat("has ", rows, " rows; use ", ids_below, " to ",
                              kGraphRowsMax, ", as ids of ",
                              ids.tensor->source(), " are below ", ids_below));
  }
  if (op.hidden() < 1 || op.hidden() > kModelWidthMax) {
    return Error(absl::StrCat("has hidden ", op.hidden(), "; use 1 to ",
                              kModelWidthMax));
  }
  RETURN_IF_ERROR(CheckInit(op.init_std()));
  RETURN_IF_ERROR(NameParameters({op.tokens()}, {""}));
  names_.embeddings[op.tokens()] = {.unit = index_, .rows = rows};
  if (!op.positions().empty()) {
    RETURN_IF_ERROR(NameParameters({op.positions()}, {""}));
  }
  return Make(
      op.y(),
      builder_.Embed({.ids = ids.tensor,
                      .tokens = op.tokens(),
                      .positions = op.positions(),
                      .vocabulary = rows,
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
  if (all > kGraphColumnsMax || sections > kGraphSectionsMax) {
    return Error(absl::StrCat("makes ", all, " columns in ", sections,
                              " parts; use at most ", kGraphColumnsMax, " in ",
                              kGraphSectionsMax));
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
  ASSIGN_OR_RETURN(const OfBatch targets,
                   ReadBatch(op.targets(), kBatchTargets));
  if (targets.elements != BatchElements::kTargets) {
    return Error(absl::StrCat("has targets ", Quoted(op.targets()),
                              " of source ", targets.tensor->source(),
                              "; use one of next_tokens"));
  }
  int tied_unit = 0;
  if (op.tied_to().empty()) {
    RETURN_IF_ERROR(CheckInit(op.init_std()));
    RETURN_IF_ERROR(NameParameters({op.weight()}, {""}));
  } else {
    const auto found = names_.embeddings.find(op.tied_to());
    if (found == names_.embeddings.end() || found->second.unit == index_) {
      return Error(absl::StrCat("is tied to ", Quoted(op.tied_to()),
                                ", which is no tokens of an embed in a unit "
                                "before it"));
    }
    if (found->second.rows != text_.graph.vocab_size()) {
      return Error(absl::StrCat("is tied to ", Quoted(op.tied_to()), " of ",
                                found->second.rows, " rows; it needs ",
                                text_.graph.vocab_size(),
                                ", as many as vocab_size says"));
    }
    tied_unit = found->second.unit;
  }
  builder_.Loss({.x = x,
                 .targets = targets.tensor,
                 .weight = op.weight(),
                 .tied_to = op.tied_to(),
                 .tied_unit = tied_unit,
                 .vocabulary = text_.graph.vocab_size(),
                 .init_std = op.init_std()});
  return absl::OkStatus();
}

}  // namespace troupe
