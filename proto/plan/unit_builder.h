// How an architecture writes down a unit: the ops, in forward order, with the
// parameters that they use. Bytes, work and places follow.
//
//   UnitBuilder block(Unit::BLOCK, {.index = 1 + layer, .layer = layer, ...});
//   const int x = block.Input(hidden);
//   const int norm = block.Norm({.x = x, .name = "h.0.ln_1", ...}).y;
//   ...
//   block.Output(block.Add({.x = ..., .residual = ...}));
//   units.Append(std::move(block));
//
// Tensors are numbers: indices into the unit's table. `output` of an op is the
// name of the tensor that it makes.
#ifndef TROUPE_PROTO_PLAN_UNIT_BUILDER_H_
#define TROUPE_PROTO_PLAN_UNIT_BUILDER_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "proto/plan/micro_batch.h"
#include "proto/plan/rope.h"
#include "proto/unit.pb.h"

namespace troupe {

// Flat buffers start every tensor on a multiple of this many elements: a cache
// line of 64 bytes in bf16, two in f32, so that offsets are the same in both.
inline constexpr int64_t kFlatAlignment = 32;

// The next multiple of kFlatAlignment.
inline int64_t FlatAligned(int64_t elements) {
  return (elements + kFlatAlignment - 1) / kFlatAlignment * kFlatAlignment;
}

class UnitBuilder {
 public:
  struct Options {
    // Of the unit in the model: it picks the random sites of the initial
    // values, which are below 2^24 for any model of up to 4096 blocks.
    int64_t index = 0;
    int64_t layer = 0;  // of a BLOCK
    // Of the random sites of layer 0's masks: those of the units before it.
    int first_mask = 0;
    MicroBatchShape shape;
    // The masks of a HEAD are numbered behind those of the units before, too.
    bool numbers_all_masks = false;
  };
  UnitBuilder(Unit::Kind kind, const Options& options);

  // The first output of the unit before, [batch, sequence, columns].
  int Input(const Dim& columns);
  // What another unit makes: source, and the tensor there. At most kPortsMax.
  int Input(const Unit::Source& source, const TensorSpec& made);
  // A tensor of the batch; the same one however often it is asked for. At most
  // kPortsMax.
  int Batch(const BatchTensor& tensor);
  // Which tensor is this unit's; once for each unit that reads it. Not one that
  // is an input.
  Dim ColumnsOf(int tensor) const;
  void Output(int tensor);

  struct EmbedArgs {
    // Ids, of the batch; null: its tokens.
    const BatchTensor* ids = nullptr;
    // [vocabulary, hidden]; several ops of the unit may have one table.
    std::string tokens;
    std::string positions;  // [positions, hidden]; empty: there are none
    int64_t vocabulary = 0;
    int64_t positions_max = 0;
    Dim hidden;
    double init_std = 0;
  };
  int Embed(const EmbedArgs& args);

  // x itself where the job has no dropout.
  int Dropout(int x);

  struct NormArgs {
    int x = -1;
    int residual = -1;  // optional
    std::string name;   // of `<name>.weight` and LayerNorm's `<name>.bias`
    std::string output;
    bool root_mean_square = false;
    double epsilon = 0;
  };
  struct NormOutputs {
    int y = -1;
    int sum = -1;  // with a residual: x + residual
  };
  NormOutputs Norm(const NormArgs& args);

  // Weights of one input, side by side in the columns of the output.
  struct Projection {
    std::string name;  // of `<name>.weight` and `<name>.bias`
    Dim out;
    // Where Hugging Face keeps all projections in `<within>.weight` and
    // `<within>.bias`, head by head (Parameter.part_of). All are of one size.
    std::string within = {};
  };
  struct LinearArgs {
    int x = -1;
    std::vector<Projection> projections;
    std::string output;
    bool in_out = false;  // weights are [in, out], else [out, in]
    bool bias = false;
    double init_std = 0;
    bool f32 = false;  // of the output, whatever x is
  };
  int Linear(const LinearArgs& args);

  // The vocabulary projection, [vocabulary, hidden], and the loss behind it.
  // `tied_to` is a parameter of unit `tied_unit`.
  struct LossArgs {
    int x = -1;
    // Of the batch; null: the tokens behind its tokens.
    const BatchTensor* targets = nullptr;
    std::string weight;   // of this unit; or
    std::string tied_to;  // an embedding, or another projection
    int tied_unit = 0;
    int64_t vocabulary = 0;
    double init_std = 0;
    // Of one that is added to the model's loss; 0: it is the model's.
    double added_weight = 0;
  };
  void Loss(const LossArgs& args);

  struct RopeArgs {
    int x = -1;
    troupe::Rope training;
    troupe::Rope decoding;
  };
  int Rope(const RopeArgs& args);

  struct HeadNormArgs {
    int x = -1;           // [queries | keys | values]
    std::string queries;  // of `<queries>.weight`, [width of a head]
    std::string keys;     // of `<keys>.weight`
    double epsilon = 0;
  };
  int HeadNorm(const HeadNormArgs& args);

  // The first section of x's columns, and the others.
  struct SplitOutputs {
    int first = -1;
    int rest = -1;
  };
  SplitOutputs Split(int x, const std::string& first, const std::string& rest);

  // The columns of both, side by side.
  int Concat(int first, int rest, const std::string& output);

  // [queries | keys | values] of tensors of one section each.
  struct JoinHeadsArgs {
    int q = -1;
    int k = -1;
    int v = -1;       // -1: each head of k has `values` columns of values, too
    int shared = -1;  // optional: columns of all heads of keys
    int64_t values = 0;  // columns of a head
    bool interleaved = false;
  };
  int JoinHeads(const JoinHeadsArgs& args);

  // Of [queries | keys | values]. The probabilities have dropout where the job
  // has. `scale` of the scores; 0: 1 / sqrt(width of a key).
  int Attention(int qkv, double scale = 0);

  // The tanh form, or the exact one. `weights`: of rows, optional.
  int Gelu(int x, bool exact = false, int weights = -1);
  // `weights`: of rows, optional.
  int SwiGlu(int gate_up, int weights = -1);

  struct RouteArgs {
    int logits = -1;  // f32
    int64_t choices = 0;
    bool sigmoid = false;
    bool renormalise = false;
    double scale = 1;
    int groups = 1;
    int groups_used = 1;
    std::string bias;      // a parameter in the choice; empty: there is none
    double bias_rate = 0;  // its change in a step; 0: it never changes
    bool bias_of_model = false;  // (Parameter.Load)
    bool logsumexp = false;
    std::string prefix = {};  // of the names of what it makes
  };
  struct RouteOutputs {
    int choices = -1;
    int gates = -1;
    int scores = -1;
    int logsumexp = -1;
  };
  RouteOutputs Route(const RouteArgs& args);

  // Of each sequence, [batch, experts].
  int RouterLoad(int choices, int64_t experts);

  // Losses of a router, and sums of what it does.
  struct RouterLossArgs {
    RouteOutputs route;
    int load = -1;       // of whole sequences: their balance is a loss; or
    std::string shares;  // a parameter, the load of the step before; or neither
    double balance_coefficient = 0;
    double z_coefficient = 0;
  };
  void RouterLoss(const RouterLossArgs& args);

  // Gates, 0 where an expert has no room for the choice.
  int Capacity(const RouteOutputs& route, int64_t experts, int64_t places);

  // Rows of x, expert by expert; back as a sum for each token.
  struct Dispatched {
    int rows = -1;
    int gates = -1;
    int sources = -1;
    int places = -1;
    int offsets = -1;
  };
  Dispatched Dispatch(int x, const RouteOutputs& route, int64_t experts);
  int Combine(int x, const Dispatched& dispatched);

  // Weights [experts, out, in] of one input, side by side in the columns of the
  // output. In Hugging Face's files each expert has `<name>.weight`, where `*`
  // in the name is its number; the parameter is called so without "*.".
  struct GroupedLinearArgs {
    int x = -1;
    int offsets = -1;
    int64_t experts = 0;
    std::vector<Projection> projections;
    std::string output;
    double init_std = 0;
  };
  int GroupedLinear(const GroupedLinearArgs& args);

  struct AddArgs {
    int x = -1;
    int residual = -1;
  };
  int Add(const AddArgs& args);

  // Hugging Face's files may have the unit's parameter under this name, too.
  void AlsoIn(const std::string& parameter, const std::string& name);

  // Another name for a tensor, which is not another one's in this unit.
  void Name(int tensor, const std::string& name) {
    table_.mutable_tensors(tensor)->set_name(name);
  }

  const UnitTable& table() const { return table_; }
  const Unit& unit() const { return unit_; }
  // Masks so far, of the ops that have random ones.
  int masks() const { return masks_; }

  // The unit without what follows from its ops (UnitList), and these. A source
  // of unit -1 is the unit before.
  struct Built {
    Unit unit;
    UnitTable table;
    std::vector<int> outputs;  // by call of Output: which it became
    std::vector<BatchTensor> batch;  // that it reads
  };
  // Parts readers of one tensor (fork_readers.h).
  Built Build() &&;

  // A parameter of no op: of a unit that computes nothing.
  int Parameter(const std::string& name, std::initializer_list<Dim> dims,
                troupe::Parameter::Init init, double init_std = 0);

 private:
  // Of token ids.
  int TableOf(const EmbedArgs& args);
  // [experts], zeros at first, whose place of the gradient counts choices.
  int LoadState(const std::string& name, int64_t experts, int choices,
                double bias_rate);
  // The op reads where documents begin, if attention is to stay within them.
  void AddDocuments(Op& op);
  // Of the index'th projection, where it lies within another tensor.
  void SetPartOf(const LinearArgs& args, int index, const char* ending,
                 int parameter);
  // Columns of a LINEAR that one B of an adapter adds to.
  struct AdapterColumns {
    size_t projection = 0;
    int section = 0;   // of the LINEAR's columns: the first
    int sections = 0;
  };
  // One A, and each B that belongs to it.
  struct Adapter {
    std::string layer;
    std::vector<AdapterColumns> ups = {};
  };
  std::vector<Adapter> AdaptersOf(const LinearArgs& args) const;
  // What a LINEAR makes, `base`, with what the job's adapters add.
  int Adapted(const LinearArgs& args, int base);
  void AddAdapterWeights(const LinearArgs& args,
                         const std::vector<Adapter>& adapters, Op& op);
  // Trained, and drawn with random numbers that no weight of the model has.
  int AdapterWeight(const std::string& name, std::initializer_list<Dim> dims,
                    troupe::Parameter::Init init, double init_std);
  int NewParameter(const std::string& name, std::initializer_list<Dim> dims,
                   troupe::Parameter::Init init, double init_std,
                   int random_site);
  int Tensor(const std::string& name, std::initializer_list<Dim> dims,
             ElementType dtype);
  int Like(int tensor, const std::string& name);
  Op& NewOp(Op::Kind kind);
  void SetMask(Op& op);
  void SetAdapterMask(Op& op);
  const Op* OnlyReader(int tensor) const;
  bool IsOfProductBefore(int index, int tensor) const;
  bool IsFused(int index) const;

  const Options options_;
  Dim batch_;
  Dim sequence_;
  Unit unit_;
  UnitTable table_;
  std::vector<int> outputs_;  // tensors
  std::vector<BatchTensor> read_;
  int masks_ = 0;
  int sites_ = 0;          // random ones of the model's parameters so far
  int adapter_sites_ = 0;  // and of those of adapters
  int adapter_masks_ = 0;
};

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_UNIT_BUILDER_H_
