#include "proto/plan/unit_builder.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/plan/fork_readers.h"
#include "proto/plan/operands.h"
#include "proto/plan/ops/op_view.h"
#include "proto/plan/ports.h"
#include "proto/plan/tensor_spec.h"

namespace troupe {
namespace {

// Random sites of one unit.
constexpr int64_t kSitesPerUnit = 64;
// Those of adapters are behind those of all units, so that a model begins with
// the same weights with and without adapters.
constexpr int64_t kFirstAdapterSite = int64_t{1} << 23;

void SetRotation(const Rope& rope, Op::Rotation& rotation) {
  for (const double frequency : rope.inverse_frequencies) {
    rotation.add_inverse_frequencies(frequency);
  }
  rotation.set_factor(rope.attention_factor);
}

}  // namespace

UnitBuilder::UnitBuilder(Unit::Kind kind, const Options& options)
    : options_(options),
      batch_(DimOf({{Dim::BATCH, options.shape.sequences}})),
      sequence_(DimOf({{Dim::SEQUENCE, options.shape.sequence_length}})) {
  unit_.set_kind(kind);
  unit_.set_layer(static_cast<int32_t>(options.layer));
}

int UnitBuilder::Parameter(const std::string& name,
                           std::initializer_list<Dim> dims,
                           troupe::Parameter::Init init, double init_std) {
  CHECK_LT(sites_, kSitesPerUnit);
  const int64_t site = options_.index * kSitesPerUnit + sites_++;
  const int index =
      NewParameter(name, dims, init, init_std, static_cast<int>(site));
  unit_.mutable_parameters(index)->set_frozen(options_.shape.lora != nullptr);
  return index;
}

int UnitBuilder::AdapterWeight(const std::string& name,
                               std::initializer_list<Dim> dims,
                               troupe::Parameter::Init init, double init_std) {
  CHECK_LT(adapter_sites_, kSitesPerUnit);
  const int64_t site =
      kFirstAdapterSite + options_.index * kSitesPerUnit + adapter_sites_++;
  const int index =
      NewParameter(name, dims, init, init_std, static_cast<int>(site));
  unit_.mutable_parameters(index)->set_adapter(true);
  return index;
}

int UnitBuilder::NewParameter(const std::string& name,
                              std::initializer_list<Dim> dims,
                              troupe::Parameter::Init init, double init_std,
                              int random_site) {
  CHECK_EQ(unit_.tied_size(), 0) << "tied parameters are numbered behind it";
  troupe::Parameter& parameter = *unit_.add_parameters();
  parameter.set_name(name);
  int64_t elements = 1;
  for (const Dim& dim : dims) {
    *parameter.add_dims() = dim;
    elements *= DimSize(dim);
  }
  parameter.set_dtype(options_.shape.dtype);
  parameter.set_offset(unit_.flat_elements());
  parameter.set_init(init);
  parameter.set_init_std(init_std);
  parameter.set_weight_decay(dims.size() >= 2);
  parameter.set_random_site(random_site);
  unit_.set_flat_elements(unit_.flat_elements() + FlatAligned(elements));
  return unit_.parameters_size() - 1;
}

void UnitBuilder::AlsoIn(const std::string& parameter,
                         const std::string& name) {
  for (troupe::Parameter& own : *unit_.mutable_parameters()) {
    if (own.name() == parameter) own.add_also_in(name);
  }
}

int UnitBuilder::Tensor(const std::string& name,
                        std::initializer_list<Dim> dims, ElementType dtype) {
  TensorSpec& tensor = *table_.add_tensors();
  tensor.set_name(name);
  for (const Dim& dim : dims) *tensor.add_dims() = dim;
  tensor.set_dtype(dtype);
  return table_.tensors_size() - 1;
}

int UnitBuilder::Like(int tensor, const std::string& name) {
  TensorSpec same = table_.tensors(tensor);
  same.set_name(name);
  same.clear_home();
  *table_.add_tensors() = std::move(same);
  return table_.tensors_size() - 1;
}

Op& UnitBuilder::NewOp(Op::Kind kind) {
  Op& op = *table_.add_ops();
  op.set_kind(kind);
  return op;
}

void UnitBuilder::SetMask(Op& op) {
  if (options_.shape.dropout == 0) return;
  Op::Mask& mask = *op.mutable_mask();
  mask.set_probability(options_.shape.dropout);
  mask.set_site(masks_++);
}

int UnitBuilder::Input(const Dim& columns) {
  TensorSpec made;
  for (const Dim& dim : {batch_, sequence_, columns}) *made.add_dims() = dim;
  made.set_dtype(options_.shape.dtype);
  Unit::Source before;
  before.set_unit(-1);
  return Input(before, made);
}

int UnitBuilder::Input(const Unit::Source& source, const TensorSpec& made) {
  const int number = unit_.inputs_size();
  *unit_.add_inputs() = source;
  TensorSpec& input = *table_.add_tensors();
  input.set_name(number == 0 ? "input" : absl::StrCat("input ", number));
  *input.mutable_dims() = made.dims();
  input.set_dtype(made.dtype());
  input.set_home(TensorSpec::INPUT);
  return table_.tensors_size() - 1;
}

Dim UnitBuilder::ColumnsOf(int tensor) const {
  return ColumnDimOf(table_.tensors(tensor));
}

void UnitBuilder::Output(int tensor) { outputs_.push_back(tensor); }

int UnitBuilder::Dropout(int x) {
  if (options_.shape.dropout == 0) return x;
  const int y = Like(x, table_.tensors(x).name() + " masked");
  Op& op = NewOp(Op::DROPOUT);
  AddInput(op, "x", x);
  AddOutput(op, "y", y);
  SetMask(op);
  return y;
}

UnitBuilder::NormOutputs UnitBuilder::Norm(const NormArgs& args) {
  const bool residual = args.residual >= 0;
  NormOutputs outputs = {.y = Like(args.x, args.output)};
  Op& op = NewOp(Op::NORM);
  op.mutable_norm()->set_root_mean_square(args.root_mean_square);
  op.mutable_norm()->set_epsilon(args.epsilon);
  AddInput(op, "x", args.x);
  AddOutput(op, "y", outputs.y);
  if (residual) {
    outputs.sum = Like(args.x, args.output + " sum");
    AddInput(op, "residual", args.residual);
    AddOutput(op, "sum", outputs.sum);
  }
  if (!args.root_mean_square) {
    AddOutput(op, "mean",
              Tensor(args.output + " mean", {batch_, sequence_}, F32));
  }
  AddOutput(op, "rstd",
            Tensor(args.output + " rstd", {batch_, sequence_}, F32));
  const Dim width = ColumnDimOf(table_.tensors(args.x));
  op.add_parameters(
      Parameter(args.name + ".weight", {width}, troupe::Parameter::ONES));
  if (!args.root_mean_square) {
    op.add_parameters(
        Parameter(args.name + ".bias", {width}, troupe::Parameter::ZEROS));
  }
  return outputs;
}

int UnitBuilder::Linear(const LinearArgs& args) {
  const Dim in = ColumnDimOf(table_.tensors(args.x));
  Dim columns;
  for (const Projection& projection : args.projections) {
    columns.mutable_sections()->MergeFrom(projection.out.sections());
  }
  const int y = Tensor(args.output, {batch_, sequence_, columns},
                       args.f32 ? F32 : options_.shape.dtype);
  if (args.f32 && options_.shape.dtype != F32) {
    table_.mutable_tensors(y)->set_gradient_dtype(options_.shape.dtype);
  }
  Op& op = NewOp(Op::LINEAR);
  op.mutable_linear()->set_in_out(args.in_out);
  op.mutable_linear()->set_bias(args.bias);
  AddInput(op, "x", args.x);
  AddOutput(op, "y", y);
  const int projections = static_cast<int>(args.projections.size());
  for (int i = 0; i < projections; ++i) {
    const Dim& out = args.projections[i].out;
    const std::string name = args.projections[i].name + ".weight";
    op.add_parameters(
        args.in_out ? Parameter(name, {in, out}, troupe::Parameter::NORMAL,
                                args.init_std)
                    : Parameter(name, {out, in}, troupe::Parameter::NORMAL,
                                args.init_std));
    SetPartOf(args, i, ".weight", unit_.parameters_size() - 1);
  }
  for (int i = 0; args.bias && i < projections; ++i) {
    op.add_parameters(Parameter(args.projections[i].name + ".bias",
                                {args.projections[i].out},
                                troupe::Parameter::ZEROS));
    SetPartOf(args, i, ".bias", unit_.parameters_size() - 1);
  }
  return Adapted(args, y);
}

void UnitBuilder::SetPartOf(const LinearArgs& args, int index,
                            const char* ending, int parameter) {
  const Projection& projection = args.projections[index];
  if (projection.within.empty()) return;
  CHECK(!args.in_out) << "rows of a weight [in, out] are no outputs";
  troupe::Parameter::PartOf& part_of =
      *unit_.mutable_parameters(parameter)->mutable_part_of();
  part_of.set_name(projection.within + ending);
  part_of.set_parts(static_cast<int64_t>(args.projections.size()));
  part_of.set_index(index);
  part_of.set_rows(projection.out.sections(0).width());
}

int UnitBuilder::Rope(const RopeArgs& args) {
  const int y = Like(args.x, table_.tensors(args.x).name() + " turned");
  Op& op = NewOp(Op::ROPE);
  AddInput(op, "x", args.x);
  AddDocuments(op);
  AddOutput(op, "y", y);
  SetRotation(args.training, *op.mutable_rope()->mutable_training());
  SetRotation(args.decoding, *op.mutable_rope()->mutable_decoding());
  return y;
}

int UnitBuilder::HeadNorm(const HeadNormArgs& args) {
  const Dim columns = table_.tensors(args.x).dims(2);
  CHECK_EQ(columns.sections_size(), 3) << "queries, keys, values";
  const int y = Like(args.x, table_.tensors(args.x).name() + " normed");
  Op& op = NewOp(Op::HEAD_NORM);
  op.mutable_head_norm()->set_epsilon(args.epsilon);
  AddInput(op, "x", args.x);
  AddOutput(op, "y", y);
  const std::pair<const char*, const std::string*> parts[] = {
      {"query_rstd", &args.queries}, {"key_rstd", &args.keys}};
  for (int i = 0; i < 2; ++i) {
    const auto& [name, norm] = parts[i];
    Dim heads;
    *heads.add_sections() = columns.sections(i);
    heads.mutable_sections(0)->set_width(1);
    AddOutput(op, name, Tensor(name, {batch_, sequence_, heads}, F32));
    op.add_parameters(
        Parameter(*norm + ".weight",
                  {DimOf({{Dim::HEAD_COLUMNS, columns.sections(i).width()}})},
                  troupe::Parameter::ONES));
  }
  return y;
}

UnitBuilder::SplitOutputs UnitBuilder::Split(int x, const std::string& first,
                                             const std::string& rest) {
  const Dim columns = ColumnDimOf(table_.tensors(x));
  CHECK_GE(columns.sections_size(), 2) << "nothing to split";
  SplitOutputs outputs = {.first = Like(x, first), .rest = Like(x, rest)};
  auto& of_first = *table_.mutable_tensors(outputs.first)
                        ->mutable_dims(2)
                        ->mutable_sections();
  of_first.DeleteSubrange(1, of_first.size() - 1);
  auto& of_rest = *table_.mutable_tensors(outputs.rest)
                       ->mutable_dims(2)
                       ->mutable_sections();
  of_rest.DeleteSubrange(0, 1);
  Op& op = NewOp(Op::SPLIT);
  AddInput(op, "x", x);
  AddOutput(op, "y", outputs.first);
  AddOutput(op, "rest", outputs.rest);
  return outputs;
}

int UnitBuilder::Concat(int first, int rest, const std::string& output) {
  const int y = Like(first, output);
  table_.mutable_tensors(y)->mutable_dims(2)->MergeFrom(
      ColumnDimOf(table_.tensors(rest)));
  Op& op = NewOp(Op::CONCAT);
  AddInput(op, "first", first);
  AddInput(op, "rest", rest);
  AddOutput(op, "y", y);
  return y;
}

int UnitBuilder::JoinHeads(const JoinHeadsArgs& args) {
  Dim queries = ColumnDimOf(table_.tensors(args.q));
  Dim keys = ColumnDimOf(table_.tensors(args.k));
  keys.mutable_sections(0)->set_width(queries.sections(0).width());
  Dim values = keys;
  values.mutable_sections(0)->set_width(args.values);
  queries.MergeFrom(keys);
  queries.MergeFrom(values);
  const int y =
      Tensor("qkv", {batch_, sequence_, queries}, options_.shape.dtype);
  Op& op = NewOp(Op::JOIN_HEADS);
  AddInput(op, "q", args.q);
  AddInput(op, "k", args.k);
  if (args.v >= 0) AddInput(op, "v", args.v);
  if (args.shared >= 0) AddInput(op, "shared", args.shared);
  AddOutput(op, "y", y);
  op.mutable_join_heads()->set_interleaved(args.interleaved);
  return y;
}

int UnitBuilder::Attention(int qkv, double scale) {
  const TensorSpec& columns = table_.tensors(qkv);
  CHECK_EQ(columns.dims(2).sections_size(), 3) << "queries, keys, values";
  Dim heads;
  *heads.add_sections() = columns.dims(2).sections(0);
  heads.mutable_sections(0)->set_width(columns.dims(2).sections(2).width());
  const int y =
      Tensor("attention", {batch_, sequence_, heads}, options_.shape.dtype);
  Dim head_count = heads;
  head_count.mutable_sections(0)->set_width(1);
  const int logsumexp =
      Tensor("logsumexp", {batch_, head_count, sequence_}, F32);
  Op& op = NewOp(Op::ATTENTION);
  AddInput(op, "qkv", qkv);
  AddDocuments(op);
  AddOutput(op, "y", y);
  AddOutput(op, "logsumexp", logsumexp);
  if (scale > 0) op.mutable_softmax()->set_scale(scale);
  SetMask(op);
  return y;
}

int UnitBuilder::Gelu(int x, bool exact, int weights) {
  const int y = Like(x, "gelu");
  Op& op = NewOp(Op::GELU);
  if (exact) op.mutable_gelu()->set_exact(true);
  AddInput(op, "x", x);
  if (weights >= 0) AddInput(op, "weights", weights);
  AddOutput(op, "y", y);
  return y;
}

int UnitBuilder::SwiGlu(int gate_up, int weights) {
  TensorSpec spec = table_.tensors(gate_up);
  Dim& columns = *spec.mutable_dims(spec.dims_size() - 1);
  CHECK_EQ(columns.sections_size(), 2) << "gate, up";
  columns.mutable_sections()->RemoveLast();
  spec.set_name("swiglu");
  *table_.add_tensors() = std::move(spec);
  const int y = table_.tensors_size() - 1;
  Op& op = NewOp(Op::SWIGLU);
  AddInput(op, "gate_up", gate_up);
  if (weights >= 0) AddInput(op, "weights", weights);
  AddOutput(op, "y", y);
  return y;
}

int UnitBuilder::Add(const AddArgs& args) {
  const int y = Like(args.residual, "sum");
  Op& op = NewOp(Op::ADD);
  AddInput(op, "x", args.x);
  AddInput(op, "residual", args.residual);
  AddOutput(op, "y", y);
  return y;
}

// The op that reads the tensor, where only one does; or null.
const Op* UnitBuilder::OnlyReader(int tensor) const {
  const Op* only = nullptr;
  for (const Op& op : table_.ops()) {
    for (const Op::Operand& input : op.inputs()) {
      if (input.tensor() != tensor) continue;
      if (only != nullptr) return nullptr;
      only = &op;
    }
  }
  return only;
}

// Whether the op before this one is a product of one weight that makes the
// tensor.
bool UnitBuilder::IsOfProductBefore(int index, int tensor) const {
  if (index == 0) return false;
  const Op& before = table_.ops(index - 1);
  return before.kind() == Op::LINEAR && WeightCount(before) == 1 &&
         before.outputs(0).tensor() == tensor;
}

// Whether a neighbour does the op's work: of a DROPOUT the op that adds what it
// masks, of a GELU the products before and behind it, of an ADD the product
// whose result it adds.
bool UnitBuilder::IsFused(int index) const {
  const Op& op = table_.ops(index);
  if (op.kind() == Op::ADD) {
    const int x = OpView(table_, op).Input("x");
    return IsOfProductBefore(index, x) && OnlyReader(x) == &op;
  }
  if (op.kind() != Op::DROPOUT && op.kind() != Op::GELU) return false;
  if (op.gelu().exact()) return false;  // products know the tanh form
  const int y = op.outputs(0).tensor();
  const Op* const reader = OnlyReader(y);
  if (reader == nullptr) return false;
  if (op.kind() == Op::DROPOUT) {
    const OpView view(table_, *reader);
    return view.HasInput("residual") && view.Input("x") == y;
  }
  const bool behind_product = IsOfProductBefore(index, op.inputs(0).tensor()) &&
                              OnlyReader(op.inputs(0).tensor()) == &op;
  return behind_product && reader->kind() == Op::LINEAR &&
         WeightCount(*reader) == 1;
}

UnitBuilder::Built UnitBuilder::Build() && {
  CHECK(masks_ == 0 || unit_.kind() != Unit::HEAD || options_.numbers_all_masks)
      << "a head's masks would be the embedding's";
  const std::vector<int> parted = ForkReaders(outputs_, table_);
  const std::vector<int> outputs = TensorsOfHome(table_, TensorSpec::OUTPUT);
  Built built;
  for (const int tensor : parted) {
    const auto found = std::find(outputs.begin(), outputs.end(), tensor);
    built.outputs.push_back(static_cast<int>(found - outputs.begin()));
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    table_.mutable_tensors(outputs[i])
        ->set_name(i == 0 ? "output" : absl::StrCat("output ", i));
  }
  for (int i = 0; i < table_.ops_size(); ++i) {
    Op& op = *table_.mutable_ops(i);
    if (IsFused(i)) op.set_fused(true);
    if (!op.has_mask() || op.kind() == Op::LOW_RANK) continue;
    op.mutable_mask()->set_site(op.mask().site() + options_.first_mask);
    op.mutable_mask()->set_sites_per_layer(masks_);
  }
  built.unit = std::move(unit_);
  built.table = std::move(table_);
  built.batch = std::move(read_);
  return built;
}

}  // namespace troupe
