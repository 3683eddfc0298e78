#include "tests/worker/layers/one_op.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "ops/cpu/device.h"
#include "ops/reduce.h"
#include "proto/base/check.h"
#include "proto/plan/precision.h"
#include "proto/plan/sum_names.h"
#include "proto/plan/tensor_spec.h"
#include "proto/plan/unit_builder.h"
#include "tests/worker/model/unit_sums.h"
#include "worker/layers/element_dtype.h"
#include "worker/layers/new_layers.h"
#include "worker/layers/operand_place.h"

namespace troupe {
namespace {

constexpr double kGradientScale = 0.25;

// Statistics, which are read again and have no gradient; of inputs those that
// count.
bool IsStatistic(const std::string& name, bool output) {
  if (!output) return name == "load";
  return name == "mean" || absl::EndsWith(name, "rstd") ||
         name == "logsumexp" || name == "scores" || name == "load" ||
         name == "low" || name == "masked";
}

int IndexOf(const std::vector<OneOp::Operand>& operands,
            const std::string& name) {
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace

OneOp::OneOp(const OneOpSpec& spec, ElementType dtype)
    : device_(NewCpuDevice({.threads = 1})), dtype_(dtype) {
  Build(spec, dtype);
  const int64_t bytes = table_.tensors_size() * kTensorBytesMax;
  values_ = std::make_unique<DeviceMemory>(*device_, bytes);
  gradients_ = std::make_unique<DeviceMemory>(*device_, bytes);
  added_memory_ = std::make_unique<DeviceMemory>(*device_, bytes);
  rounded_ =
      std::make_unique<DeviceMemory>(*device_, unit_.flat_elements() * 4);
  flat_gradients_ =
      std::make_unique<DeviceMemory>(*device_, unit_.flat_elements() * 4);
  parameters.resize(unit_.flat_elements());
  FillRandom(absl::MakeSpan(parameters), 1);
  if (spec.read_elsewhere) {
    added_.resize(inputs[0].value.size());
    FillRandom(absl::MakeSpan(added_), 2);
  }
  Place();
  const std::vector<Unit> units = {unit_};
  sums_ = FirstSums();
  AddSums(table_, /*index=*/0, sums_);
  scalars_.resize(SumElements(sums_));
  auto layers = NewLayers({.table = table_,
                           .places = places_,
                           .unit = unit_,
                           .units = units,
                           .seed = 7,
                           .sums = &sums_});
  CHECK_OK(layers.status());
  layers_ = *std::move(layers);
}

void OneOp::Build(const OneOpSpec& spec, ElementType dtype) {
  Op& op = *table_.add_ops();
  op = spec.op;
  const auto add = [&](const OneOpSpec::Operand& operand, Op::Operand& in_op,
                       bool output) {
    TensorSpec& tensor = *table_.add_tensors();
    tensor.set_name(operand.name);
    for (const Dim& dim : operand.dims) *tensor.add_dims() = dim;
    tensor.set_dtype(operand.dtype == ELEMENT_TYPE_UNSPECIFIED ? dtype
                                                               : operand.dtype);
    tensor.set_row_alignment(operand.row_alignment);
    const int number = table_.tensors_size() - 1;
    CHECK_LE(BytesOf(tensor), kTensorBytesMax);
    in_op.set_name(operand.name);
    in_op.set_tensor(number);
    Operand made = {
        .name = operand.name, .tensor = number, .ints = operand.ints};
    made.value.resize(ElementsOf(tensor));
    made.gradient.resize(ElementsOf(tensor));
    made.differentiable =
        tensor.dtype() != I32 && !IsStatistic(operand.name, output);
    if (tensor.dtype() == I32 && operand.ints.empty()) {
      tokens.resize(ElementsOf(tensor));
    }
    return made;
  };
  for (const OneOpSpec::Operand& input : spec.inputs) {
    inputs.push_back(add(input, *op.add_inputs(), /*output=*/false));
    FillRandom(absl::MakeSpan(inputs.back().value), 10 + inputs.size());
    for (float& value : inputs.back().value) {
      value = value * input.scale + input.shift;
    }
  }
  for (const OneOpSpec::Operand& output : spec.outputs) {
    outputs.push_back(add(output, *op.add_outputs(), /*output=*/true));
    FillRandom(absl::MakeSpan(outputs.back().gradient), 20 + outputs.size());
  }
  for (const std::vector<int64_t>& shape : spec.parameters) {
    op.add_parameters(unit_.parameters_size());
    Parameter& parameter = *unit_.add_parameters();
    parameter.set_name("parameter");
    parameter.set_dtype(dtype);
    parameter.set_offset(unit_.flat_elements());
    int64_t elements = 1;
    for (const int64_t dim : shape) {
      *parameter.add_dims() = DimOf({{Dim::HIDDEN, dim}});
      elements *= dim;
    }
    unit_.set_flat_elements(unit_.flat_elements() + FlatAligned(elements));
  }
}

// Values lie in STASH, gradients in WEIGHT_STASH, tensor behind tensor, but
// where the rules of the kind put two at one place.
void OneOp::Place() {
  const OpRules rules = RulesOf({table_, table_.ops(0)});
  const auto place = [&](UnitMemory memory, int tensor) {
    return TensorPlace{
        .memory = memory, .offset_bytes = Offset(tensor), .tensor = tensor};
  };
  OpPlaces op;
  for (const Operand& input : inputs) {
    op.inputs.push_back(place(UnitMemory::kStash, input.tensor));
  }
  for (const Operand& output : outputs) {
    op.outputs.push_back(place(UnitMemory::kStash, output.tensor));
    op.output_gradients.push_back(
        output.differentiable ? place(UnitMemory::kWeightStash, output.tensor)
                              : TensorPlace());
  }
  for (const std::string& name : rules.own_gradients) {
    const int output = IndexOf(outputs, name);
    op.output_gradients[output] =
        place(UnitMemory::kWeightStash, outputs[output].tensor);
  }
  for (const InPlace& pair : rules.in_place) {
    const int output = IndexOf(outputs, pair.output);
    if (output < 0) continue;
    op.outputs[output].offset_bytes =
        op.inputs[IndexOf(inputs, pair.input)].offset_bytes;
  }
  op.input_gradients.resize(inputs.size());
  op.added_gradients.resize(inputs.size());
  if (!added_.empty()) {
    op.added_gradients[0] = place(UnitMemory::kWorkspace, inputs[0].tensor);
  }
  for (const InputGradient& gradient : rules.gradients) {
    const int input = IndexOf(inputs, gradient.input);
    TensorPlace& made = op.input_gradients[input];
    made = place(UnitMemory::kWeightStash, inputs[input].tensor);
    switch (gradient.rule) {
      case InputGradient::kInPlace:
      case InputGradient::kOfOutput:
        made = op.output_gradients[IndexOf(outputs, gradient.of)];
        break;
      case InputGradient::kOfInput:
        made = op.input_gradients[IndexOf(inputs, gradient.of)];
        break;
      case InputGradient::kByForward:
        made = op.inputs[input];
        break;
      default:
        break;
    }
  }
  places_.ops = {std::move(op)};
}

LayerCall OneOp::Call() {
  LayerCall call = {.device = *device_,
                    .context = {.step = 5,
                                .first_sample = 3,
                                .training = true,
                                .gradient_scale = kGradientScale,
                                .token_scale = kGradientScale},
                    .parameters = rounded_->get(),
                    .parameter_gradients = flat_gradients_->get(),
                    .scalars = scalars_.data()};
  call.memory[static_cast<size_t>(UnitMemory::kStash)] = values_->get();
  call.memory[static_cast<size_t>(UnitMemory::kWeightStash)] =
      gradients_->get();
  call.memory[static_cast<size_t>(UnitMemory::kWorkspace)] =
      added_memory_->get();
  return call;
}

void OneOp::WriteInts(const Operand& input) {
  const std::vector<int32_t>& ints = input.ints.empty() ? tokens : input.ints;
  CHECK_EQ(static_cast<int64_t>(ints.size()),
           ElementsOf(table_.tensors(input.tensor)));
  std::copy(ints.begin(), ints.end(),
            reinterpret_cast<int32_t*>(ValueOf(input.tensor)));
}

void OneOp::Write(int tensor, void* to, const std::vector<float>& values) {
  const TensorSpec& spec = table_.tensors(tensor);
  const int64_t rows = RowsOf(spec);
  const int64_t columns = ColumnsOf(spec);
  const Tensor padded(to, DTypeOfElement(spec.dtype()),
                      {rows, RowStrideOf(spec)});
  Copy(*device_, {.x = Tensor(const_cast<float*>(values.data()), DType::kF32,
                              {rows, columns}),
                  .y = padded.Slice(1, 0, columns)});
}

std::vector<float> OneOp::Read(int tensor, const void* from) const {
  const TensorSpec& spec = table_.tensors(tensor);
  const int64_t rows = RowsOf(spec);
  const int64_t columns = ColumnsOf(spec);
  std::vector<float> values(rows * columns);
  if (spec.dtype() == I32) {
    const auto* const ints = static_cast<const int32_t*>(from);
    std::copy(ints, ints + values.size(), values.begin());
    return values;
  }
  const Tensor padded(const_cast<void*>(from), DTypeOfElement(spec.dtype()),
                      {rows, RowStrideOf(spec)});
  Copy(*device_, {.x = padded.Slice(1, 0, columns),
                  .y = Tensor(values.data(), DType::kF32, {rows, columns})});
  return values;
}

char* OneOp::ValueOf(int tensor) const {
  return static_cast<char*>(values_->get()) + Offset(tensor);
}

void OneOp::Forward() {
  for (const Operand& input : inputs) {
    if (table_.tensors(input.tensor).dtype() == I32) {
      WriteInts(input);
    } else {
      Write(input.tensor, ValueOf(input.tensor), input.value);
    }
  }
  if (!parameters.empty()) {
    const int64_t n = unit_.flat_elements();
    Copy(*device_, {.x = Tensor(parameters.data(), DType::kF32, {n}),
                    .y = Tensor(rounded_->get(), DTypeOfElement(dtype_), {n})});
  }
  std::fill(scalars_.begin(), scalars_.end(), 0);
  layers_[0]->Forward(Call());
  for (size_t i = 0; i < outputs.size(); ++i) {
    outputs[i].value =
        Read(outputs[i].tensor, static_cast<char*>(values_->get()) +
                                    places_.ops[0].outputs[i].offset_bytes);
  }
}

void OneOp::Backward() {
  for (const Operand& output : outputs) {
    if (!output.differentiable) continue;
    Write(output.tensor,
          static_cast<char*>(gradients_->get()) + Offset(output.tensor),
          output.gradient);
  }
  if (!added_.empty()) {
    Write(inputs[0].tensor,
          static_cast<char*>(added_memory_->get()) + Offset(inputs[0].tensor),
          added_);
  }
  flat_gradients_->Zero();
  layers_[0]->BackwardInput(Call());
  layers_[0]->BackwardWeight(Call());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorPlace& place = places_.ops[0].input_gradients[i];
    if (!place.exists()) continue;
    const DeviceMemory& memory =
        place.memory == UnitMemory::kStash ? *values_ : *gradients_;
    inputs[i].gradient =
        Read(inputs[i].tensor,
             static_cast<char*>(memory.get()) + place.offset_bytes);
  }
  parameter_gradients = {flat_gradients_->span().begin(),
                         flat_gradients_->span().end()};
}

double OneOp::Loss() {
  Forward();
  const Op::RouterLoss& router = table_.ops(0).router_loss();
  double loss = scalars_[0];
  for (const auto& [name, coefficient] :
       {std::pair{kRouterBalanceSum, router.balance_coefficient()},
        std::pair{kRouterZSum, router.z_coefficient()}}) {
    const auto place = FindSum(sums_, name);
    if (place.has_value()) loss += coefficient * scalars_[place->first];
  }
  loss *= kGradientScale;
  for (const Operand& output : outputs) {
    if (output.differentiable) loss += Dot(output.value, output.gradient);
  }
  if (!added_.empty()) loss += Dot(inputs[0].value, added_);
  return loss;
}

}  // namespace troupe
