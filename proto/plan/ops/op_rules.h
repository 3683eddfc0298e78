// What a kind of op says of itself, so that everything else about a unit can be
// derived: its operands, which tensors the backward passes read, how the
// gradients of inputs come about, which outputs may lie where an input lies,
// the work of each pass, and what it reads and makes where its tensors are cut
// over ranks. A kind is one file, with two or three functions, and one row in
// op_rules.cc.
//
// Operands are named as in the op. A kind with parameters has a backward-weight
// pass, which reads the gradient of output "y" unless it says otherwise.
#ifndef TROUPE_PROTO_PLAN_OPS_OP_RULES_H_
#define TROUPE_PROTO_PLAN_OPS_OP_RULES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "proto/plan/ops/op_view.h"
#include "proto/plan/ops/products.h"
#include "proto/unit.pb.h"

namespace troupe {

// How the gradient of an input comes about in the backward-input pass.
struct InputGradient {
  enum Rule {
    kNew,           // made; the input must have no other reader
    kNewSum,        // made, with the gradient that other readers made added
    kInPlace,       // made where the gradient of output `of` lies
    kInPlaceIfOwn,  // the same where no other tensor, or unit, has that; else
                    // made
    kOfOutput,      // it is the gradient of output `of`
    kOfInput,       // it is the gradient of input `of`, a row above
    kByForward,     // the forward pass writes it over the input
    kMadeAgain,  // made, and once more in the backward-weight pass where that
                 // reads it: so cheap that it is not kept
    kInParts,    // made in part; its other readers make the other parts: those
                 // of other ranks, or other rows
  };
  std::string input;
  Rule rule = kNew;
  std::string of;
};

struct InPlace {
  std::string output;
  std::string input;
  // It is the input, so that both may be read on; else the input is gone.
  bool same = false;
};

// What an op's forward adds to one of the plan's sums: f64s, one or several.
struct SumRule {
  std::string name;
  int64_t elements = 1;
  // The unit has a sum of this name for itself; else all units that have such
  // an op add to one.
  bool own = false;
  // The input over whose rows the sum runs. Of ranks that have the same rows of
  // it one adds, whichever columns each has.
  std::string rows_of;
};

// Which neighbours do the work of an op that is fused (Op.fused).
struct Fusion {
  bool forward_by_maker = false;    // the op that makes its first input
  bool backward_by_reader = false;  // the op that reads its output makes the
                                    // gradient of its input
  bool reads = false;               // what it adds to that input is read all
                                    // the same
};

// What ranks tell each other before an op of which an input is cut by columns:
// each makes a part, [.., .., columns] in f32 of the input's other dims, and
// the op reads those of all, by rank along the first dim.
struct PartsRule {
  std::string of;                        // the input that may be cut
  Op::Kind kind = Op::KIND_UNSPECIFIED;  // makes a part
  std::vector<std::string> reads;  // of the op's inputs: what it is made of
  std::string parts;               // its output, and the op's input
  std::string name;                // of the tensor
  int64_t columns = 0;
};

struct OpRules {
  std::vector<InputGradient> gradients;  // of inputs that have one
  // Inputs and outputs whose values the passes read again.
  std::vector<std::string> backward_input_reads;
  std::vector<std::string> backward_weight_reads;
  // Whether the backward-weight pass reads the gradient of the first output,
  // too: of a parameter that is a state (Parameter.load) it does not.
  bool weight_reads_gradient = true;
  std::vector<InPlace> in_place;
  // What the op needs to make its other outputs again where the forward pass
  // has written over its inputs, or another op has done its work. Empty: its
  // inputs.
  std::vector<std::string> apart_reads;
  std::vector<SumRule> sums;
  // Outputs that the forward pass writes also where nobody reads them.
  std::vector<std::string> always_written;
  // Outputs that no other op reads, and whose gradients the op's own backward
  // pass makes; where the op trains parameters, they are kept for their pass.
  std::vector<std::string> own_gradients;
  // Inputs that the forward pass writes over.
  std::vector<std::string> overwrites;
  // Outputs are the memory of an input: the forward pass has nothing to do.
  bool only_names = false;
  Fusion fusion;                // where the op is fused
  bool takes_in_fused = false;  // neighbours that are fused may leave their
                                // work to ops like this
  // One of several calls that each multiply a panel of what ranks have, which
  // "x" and "w" name, and add it to "y before" (Op.panel).
  bool in_panels = false;
  absl::optional<PartsRule> parts;
  // Of an op that reads tensors of the batch: the operand whose rows it needs
  // them for. A rank has of the batch what it has of this, by sequence and
  // position.
  std::string batch_rows;
  // Text is generated without the op.
  bool training_only = false;
  // The input that text is generated from: of a loss, which generating leaves
  // out.
  std::string decodes;
  // Flops of a training step that the op's model counts for one token, by which
  // MFU is measured. Absent: 6 for each of its parameters.
  absl::optional<double> model_flops;
  // The share of its parameters that a token meets.
  double active_share = 1;
  // What the op's products are. They are priced by sizes like theirs.
  PassProducts products;
  // What kernels for GPUs take beside their operands (proto/base/gpu_limits.h).
  int64_t gpu_scratch_bytes = 0;
  // The same where gradients of parameters are kept in the parameters' type.
  int64_t gpu_narrow_gradient_bytes = 0;
  Work forward;
  Work backward_input;
  Work backward_weight;
  Work apart;  // from `apart_reads`
};

// Without what only frozen parameters would need, and tensors without a
// gradient. REQUIRES an op that has the operands of its kind.
OpRules RulesOf(const OpView& op);

// The places in Op.outputs of those that OpRules.own_gradients names.
std::vector<int> OwnGradientsOf(const Op& op, const OpRules& rules);
// Whether the op's backward-input pass makes such gradients for parameters that
// it trains, also where no input has a gradient.
bool TrainsByOwnGradients(const Op& op, const OpRules& rules);

// How a tensor lies along one axis of the mesh.
struct AxisCut {
  Layout::Placement placement = Layout::REPLICATE;
  int dim = 0;    // SHARD: the one that is cut
  int shift = 0;  // SHARD: the slice of the rank this many places before
  // SHARD, PARTIAL: of this place's slice of `dim`, on all ranks; -1: not so
  int panel = -1;
  // SHARD of positions: of the rows of all samples as one. Where the ranks
  // divide the samples, that is what they have of these.
  bool rows = false;
  bool operator==(const AxisCut&) const = default;
};
struct TensorCut {
  AxisCut value;
  AxisCut gradient;
};

// Whether it is the last dim that is cut.
bool CutsColumns(const TensorSpec& tensor, const AxisCut& cut);

// How an op must find its inputs, and leaves its outputs, so that ranks along
// the axis each compute their part. Parallel to Op.inputs and Op.outputs.
struct OpCut {
  std::vector<TensorCut> inputs;
  std::vector<TensorCut> outputs;
  // Whether the gradients of parameters that are not cut are summands; else
  // each rank has the same.
  bool sums_parameters = false;
};

// What is wanted of an axis: the kinds of dims that it cuts, and how each of
// the table's tensors is to lie for that.
struct Wishes {
  std::vector<Dim::Kind> kinds;
  std::vector<AxisCut> tensors;
  std::vector<AxisCut> gradients;  // of each (GradientWish)
};
// How the gradient of a tensor is to lie that lies so itself: the same way, but
// for weights. Where ranks have other rows of what these are multiplied with,
// each has a summand.
AxisCut GradientWish(const TensorSpec& tensor, const AxisCut& value,
                     const std::vector<Dim::Kind>& kinds);
OpCut CutOf(const OpView& op, const Wishes& wishes);

// Whether ops of the kind read and make some tensors whole and others in
// slices: products and tables turn one into the other, or have whole weights
// for some rows, norms of cut rows have row sums of whole ones, rows have a
// weight for all their columns. All others compute on one slice of everything.
bool MixesLayouts(Op::Kind kind);

// What ranks do to turn a tensor that lies one way along an axis into one that
// lies another: COLLECTIVE_UNSPECIFIED, nothing, where the two are the same;
// BROADCAST and REDUCE have the panel's place as root;
// nullopt where no exchange does.
absl::optional<Collective> TurnOf(const AxisCut& from, const AxisCut& to);

// An operand that ops of a kind have.
struct OperandRule {
  const char* name;
  bool output = false;
  bool backward = false;  // one of Op.backward_inputs
  bool optional = false;
  int dims = 0;      // of its tensor; 0: any
  int sections = 0;  // of the last dim; 0: any
};
std::vector<OperandRule> OperandsOf(Op::Kind kind);

void AddTo(const Work& work, Work& sum);

// The sum of all ops' work.
struct UnitWork {
  Work forward;
  Work backward_input;
  Work backward_weight;
};
UnitWork WorkOf(const UnitTable& table);
// Of ops [begin, end).
UnitWork WorkOf(const UnitTable& table, int begin, int end);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_OPS_OP_RULES_H_
