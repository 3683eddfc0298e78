#include "proto/plan/graph/print_graph.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "google/protobuf/text_format.h"
#include "proto/base/status.h"
#include "proto/graph.pb.h"
#include "proto/plan/batch.h"
#include "proto/plan/batch_sources.h"
#include "proto/plan/graph/graph_batch.h"
#include "proto/plan/ops/op_rules.h"
#include "proto/plan/ports.h"

namespace troupe {
namespace {

using google::protobuf::TextFormat;

GraphColumns::Kind KindOf(Dim::Kind kind) {
  switch (kind) {
    case Dim::HEADS:
      return GraphColumns::HEADS;
    case Dim::KEY_VALUE_HEADS:
      return GraphColumns::KEY_VALUE_HEADS;
    case Dim::INTERMEDIATE:
      return GraphColumns::INTERMEDIATE;
    default:
      return GraphColumns::HIDDEN;
  }
}

// "NAME.weight" without its end.
std::string WithoutEnd(const std::string& name) {
  return name.substr(0, name.rfind('.'));
}

// Names of tensors that other units read: by unit and output.
using OutputNames = std::map<std::pair<int, int>, std::string>;

// One unit, op by op.
class UnitPrinter {
 public:
  UnitPrinter(const UnitList& list, int index, const std::string& name,
              const GraphSizes& sizes, OutputNames& outputs)
      : batch_(list.batch),
        sizes_(sizes),
        unit_(list.units[index]),
        table_(list.tables[unit_.table()]),
        index_(index),
        outputs_(outputs) {
    graph_.set_name(name);
  }

  absl::StatusOr<GraphUnit> Print() {
    const std::vector<int> inputs = TensorsOfHome(table_, TensorSpec::INPUT);
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Unit::Source& source = unit_.inputs(static_cast<int>(i));
      names_[inputs[i]] = outputs_.at({source.unit(), source.output()});
    }
    for (const int t : TensorsOfHome(table_, TensorSpec::BATCH)) {
      names_[t] = absl::StrCat(kBatchPrefix, table_.tensors(t).name());
    }
    for (const Op& op : table_.ops()) RETURN_IF_ERROR(Add(op));
    const std::vector<int> made = TensorsOfHome(table_, TensorSpec::OUTPUT);
    for (size_t k = 0; k < made.size(); ++k) {
      outputs_[{index_, static_cast<int>(k)}] =
          absl::StrCat(graph_.name(), ":", NameOf(made[k]));
    }
    return std::move(graph_);
  }

 private:
  // What a FORK hands on has the name of what it reads.
  std::string NameOf(int tensor) {
    tensor = Forked(tensor);
    const auto found = names_.find(tensor);
    if (found != names_.end()) return found->second;
    const std::string wanted = absl::StrReplaceAll(
        table_.tensors(tensor).name(), {{":", " "}, {"{", "("}, {"}", ")"}});
    std::string name = wanted;
    for (int i = 2; !taken_.insert(name).second; ++i) {
      name = absl::StrCat(wanted, " ", i);
    }
    return names_[tensor] = name;
  }
  int Forked(int tensor) const {
    for (const Op& op : table_.ops()) {
      if (op.kind() != Op::FORK) continue;
      for (const Op::Operand& output : op.outputs()) {
        if (output.tensor() == tensor) return Forked(op.inputs(0).tensor());
      }
    }
    return tensor;
  }

  // Of the table of an embed that reads these ids, where it says nothing else.
  int64_t RowsOf(const TensorSpec& ids) const {
    const BatchTensor* const tensor = FindBatchTensor(batch_, ids.name());
    const BatchSource* const source =
        tensor == nullptr ? nullptr : FindBatchSource(tensor->source());
    const bool positions =
        source != nullptr && source->elements == BatchElements::kPositions;
    return positions ? sizes_.max_position_embeddings : sizes_.vocab_size;
  }

  std::string In(const Op& op, const char* name) {
    return NameOf(OpView(table_, op).Input(name));
  }
  std::string Out(const Op& op, const char* name) {
    return NameOf(OpView(table_, op).Output(name));
  }
  const Parameter& ParameterOf(const Op& op, int i) const {
    return unit_.parameters(op.parameters(i));
  }
  std::string StemOf(const Op& op, int i) const {
    return WithoutEnd(ParameterOf(op, i).name());
  }

  absl::Status Add(const Op& op) {
    switch (op.kind()) {
      case Op::FORK:
      case Op::CROSS_ENTROPY:  // the LINEAR before it says it
        return absl::OkStatus();
      case Op::EMBED: {
        GraphOp::Embed& embed = *graph_.add_op()->mutable_embed();
        embed.set_x(In(op, "tokens"));
        embed.set_y(Out(op, "y"));
        embed.set_tokens(ParameterOf(op, 0).name());
        const int64_t rows = ParameterOf(op, 0).dims(0).sections(0).count();
        if (rows != RowsOf(OpView(table_, op).input("tokens"))) {
          embed.set_rows(rows);
        }
        if (op.parameters_size() > 1) {
          embed.set_positions(ParameterOf(op, 1).name());
        }
        const TensorSpec& y = OpView(table_, op).output("y");
        embed.set_hidden(y.dims(2).sections(0).count());
        embed.set_init_std(ParameterOf(op, 0).init_std());
        return absl::OkStatus();
      }
      case Op::DROPOUT:
        return AddSimple(op, *graph_.add_op()->mutable_dropout());
      case Op::NORM: {
        GraphOp::Norm& norm = *graph_.add_op()->mutable_norm();
        norm.set_x(In(op, "x"));
        norm.set_y(Out(op, "y"));
        if (OpView(table_, op).HasInput("residual")) {
          norm.set_residual(In(op, "residual"));
          norm.set_sum(Out(op, "sum"));
        }
        norm.set_parameters(StemOf(op, 0));
        norm.set_root_mean_square(op.norm().root_mean_square());
        norm.set_epsilon(op.norm().epsilon());
        return absl::OkStatus();
      }
      case Op::LINEAR:
        return AddLinear(op);
      case Op::ROPE: {
        GraphOp::Rope& rope = *graph_.add_op()->mutable_rope();
        rope.set_x(In(op, "x"));
        rope.set_y(Out(op, "y"));
        SetTurn(op.rope().training(), *rope.mutable_training());
        if (op.rope().training().SerializeAsString() !=
            op.rope().decoding().SerializeAsString()) {
          SetTurn(op.rope().decoding(), *rope.mutable_decoding());
        }
        return absl::OkStatus();
      }
      case Op::HEAD_NORM: {
        GraphOp::HeadNorm& norm = *graph_.add_op()->mutable_head_norm();
        norm.set_x(In(op, "x"));
        norm.set_y(Out(op, "y"));
        norm.set_queries(StemOf(op, 0));
        norm.set_keys(StemOf(op, 1));
        norm.set_epsilon(op.head_norm().epsilon());
        return absl::OkStatus();
      }
      case Op::ATTENTION: {
        GraphOp::Attention& attention = *graph_.add_op()->mutable_attention();
        attention.set_x(In(op, "qkv"));
        attention.set_y(Out(op, "y"));
        return absl::OkStatus();
      }
      case Op::GELU: {
        GraphOp::Gelu& gelu = *graph_.add_op()->mutable_gelu();
        gelu.set_exact(op.gelu().exact());
        return AddSimple(op, gelu);
      }
      case Op::SWIGLU: {
        GraphOp::SwiGlu& swiglu = *graph_.add_op()->mutable_swiglu();
        swiglu.set_x(In(op, "gate_up"));
        swiglu.set_y(Out(op, "y"));
        return absl::OkStatus();
      }
      case Op::ADD: {
        GraphOp::Add& add = *graph_.add_op()->mutable_add();
        add.set_residual(In(op, "residual"));
        return AddSimple(op, add);
      }
      default:
        return absl::InvalidArgumentError(
            absl::StrCat("unit ", index_, " has an op ",
                         Op::Kind_Name(op.kind()), ", which no graph has"));
    }
  }

  template <typename Message>
  absl::Status AddSimple(const Op& op, Message& message) {
    message.set_x(In(op, "x"));
    message.set_y(Out(op, "y"));
    return absl::OkStatus();
  }

  static void SetTurn(const Op::Rotation& rotation, GraphOp::Rope::Turn& turn) {
    *turn.mutable_frequency() = rotation.inverse_frequencies();
    turn.set_factor(rotation.factor());
  }

  // Of the loss where a CROSS_ENTROPY reads what it makes.
  absl::Status AddLinear(const Op& op) {
    for (const Op& reader : table_.ops()) {
      if (reader.kind() != Op::CROSS_ENTROPY ||
          reader.inputs(0).tensor() != op.outputs(0).tensor()) {
        continue;
      }
      GraphOp::Loss& loss = *graph_.add_op()->mutable_loss();
      loss.set_x(In(op, "x"));
      loss.set_targets(In(reader, "targets"));
      const int tied = op.parameters(0) - unit_.parameters_size();
      if (tied >= 0) {
        loss.set_tied_to(unit_.tied(tied).parameter());
      } else {
        loss.set_weight(ParameterOf(op, 0).name());
        loss.set_init_std(ParameterOf(op, 0).init_std());
      }
      return absl::OkStatus();
    }
    GraphOp::Linear& linear = *graph_.add_op()->mutable_linear();
    linear.set_x(In(op, "x"));
    linear.set_y(Out(op, "y"));
    linear.set_in_out(op.linear().in_out());
    linear.set_bias(op.linear().bias());
    linear.set_init_std(ParameterOf(op, 0).init_std());
    for (int i = 0; i < WeightCount(op); ++i) {
      const Parameter& parameter = ParameterOf(op, i);
      GraphOp::Linear::Weight& weight = *linear.add_weight();
      weight.set_parameters(StemOf(op, i));
      if (parameter.has_part_of()) {
        weight.set_within(WithoutEnd(parameter.part_of().name()));
      }
      const Dim& out = parameter.dims(op.linear().in_out() ? 1 : 0);
      for (const Dim::Section& section : out.sections()) {
        GraphColumns& columns = *weight.add_columns();
        columns.set_kind(KindOf(section.kind()));
        columns.set_count(section.count());
        if (section.width() != 1) columns.set_width(section.width());
      }
    }
    return absl::OkStatus();
  }

  const BatchSchema& batch_;
  const GraphSizes& sizes_;
  const Unit& unit_;
  const UnitTable& table_;
  const int index_;
  OutputNames& outputs_;
  GraphUnit graph_;
  std::map<int, std::string> names_;  // by tensor
  std::set<std::string> taken_;
};

constexpr char kBlock[] = "block.";
constexpr int kNoLayer = -1;

// The unit as any copy of itself: its number is {layer}, and the unit before it
// "before".
std::string Template(const GraphUnit& unit, int layer,
                     const std::string& before) {
  std::string text;
  TextFormat::Printer printer;
  printer.PrintToString(unit, &text);
  return absl::StrReplaceAll(text,
                             {{absl::StrCat("\"", before, ":"), "\"before:"},
                              {absl::StrCat("\"", kBlock, layer, "\""),
                               absl::StrCat("\"", kBlock, "{layer}\"")},
                              {absl::StrCat(".", layer, "."), ".{layer}."}});
}

std::string NameOf(const Unit& unit, int index, int blocks) {
  if (unit.kind() == Unit::BLOCK) return absl::StrCat(kBlock, blocks);
  if (unit.kind() == Unit::EMBEDDING && index == 0) return "embedding";
  if (unit.kind() == Unit::HEAD) return "head";
  return absl::StrCat("unit.", index);
}

std::string TextOf(const ModelGraph& graph) {
  std::string text;
  TextFormat::Printer printer;
  printer.SetUseShortRepeatedPrimitives(true);
  printer.PrintToString(graph, &text);
  return text;
}

absl::Status AddBatch(const BatchTensor& tensor, ModelGraph& graph) {
  GraphBatch& added = *graph.add_batch();
  added.set_name(tensor.tensor().name());
  added.set_source(tensor.source());
  for (int d = 1; d < tensor.tensor().dims_size(); ++d) {
    const Dim::Section& section = tensor.tensor().dims(d).sections(0);
    if (section.kind() != Dim::SEQUENCE) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor ", added.name(), " of the batch has a dim ",
                       Dim::Kind_Name(section.kind()), ", which no graph has"));
    }
    added.add_dim()->set_kind(GraphBatch::Dim::SEQUENCE);
  }
  return absl::OkStatus();
}

// A unit, in text, or several alike.
struct Printed {
  std::string text;
  int copies = 1;
  bool repeats = false;
};

}  // namespace

absl::StatusOr<std::string> PrintGraph(const UnitList& units,
                                       const GraphSizes& sizes) {
  std::vector<Printed> printed;
  OutputNames outputs;
  std::string before;
  int blocks = 0;
  for (int u = 0; u < static_cast<int>(units.units.size()); ++u) {
    const Unit& unit = units.units[u];
    if (!unit.has_table()) {
      return absl::InvalidArgumentError(
          absl::StrCat("unit ", u, " computes nothing: it has no ops"));
    }
    const bool block = unit.kind() == Unit::BLOCK;
    const std::string name = NameOf(unit, u, blocks);
    ASSIGN_OR_RETURN(const GraphUnit graph,
                     UnitPrinter(units, u, name, sizes, outputs).Print());
    // Copies are counted from 0, as blocks are.
    const bool counts = block && unit.layer() == blocks;
    const std::string as_copy =
        Template(graph, counts ? blocks : kNoLayer, before);
    const bool is_copy = counts && !printed.empty() && printed.back().repeats &&
                         printed.back().copies == blocks &&
                         printed.back().text == as_copy;
    if (is_copy) {
      ++printed.back().copies;
    } else {
      const bool begins = counts && blocks == 0;
      printed.push_back(
          {.text = begins ? as_copy : Template(graph, kNoLayer, before),
           .copies = 1,
           .repeats = begins});
    }
    before = name;
    if (block) ++blocks;
  }
  std::string text = absl::StrCat(
      "vocab_size: ", sizes.vocab_size,
      "\nmax_position_embeddings: ", sizes.max_position_embeddings, "\n");
  ModelGraph batch;
  for (const BatchTensor& tensor : units.batch) {
    RETURN_IF_ERROR(AddBatch(tensor, batch));
  }
  absl::StrAppend(&text, "\n", TextOf(batch));
  for (const Printed& unit : printed) {
    GraphUnit graph;
    TextFormat::ParseFromString(unit.text, &graph);
    if (unit.repeats) graph.set_repeat(unit.copies);
    ModelGraph one;
    *one.add_unit() = std::move(graph);
    absl::StrAppend(&text, "\n", TextOf(one));
  }
  return text;
}

}  // namespace troupe
