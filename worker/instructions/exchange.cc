#include "worker/instructions/exchange.h"

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/plan/program_text.h"

namespace troupe {
namespace {

Element ElementOf(ElementType dtype) {
  switch (dtype) {
    case F32:
      return Element::kF32;
    case BF16:
      return Element::kBF16;
    default:
      CHECK(false) << "nothing exchanges " << ElementType_Name(dtype);
      return Element::kByte;
  }
}

CommBuffer BufferOf(const OperandBytes& operand, Element element) {
  return {
      .data = operand.data,
      .elements = operand.bytes / static_cast<int64_t>(ElementBytes(element)),
      .element = element};
}

}  // namespace

absl::Status RunExchange(const Call& call) {
  const Instruction& instruction = call.instruction;
  const Instruction::Exchange& exchange = instruction.exchange();
  const Element element = ElementOf(exchange.dtype());
  const CommBuffer to =
      BufferOf(BytesOfOperand(call, Instruction::TO), element);
  const CommBuffer from =
      BufferOf(BytesOfOperand(call, Instruction::FROM), element);
  Communicator& communicator =
      *call.state.communicators.at(instruction.group());
  const CommOptions options = {
      .name = absl::StrCat(exchange.backward() ? "gradients" : "values",
                           " within unit ", instruction.unit(), ", op ",
                           exchange.op(), ", micro-batch ",
                           instruction.micro_batch()),
      .timeout = call.state.collective_timeout};
  switch (exchange.collective()) {
    case ALL_REDUCE:
      CHECK(from.data == nullptr) << InstructionWords(instruction);
      return communicator.AllReduce(to, ReduceOp::kSum, options);
    case ALL_GATHER:
      return communicator.AllGather({.send = from, .receive = to}, options);
    case REDUCE_SCATTER:
      return communicator.ReduceScatter({.send = from, .receive = to},
                                        ReduceOp::kSum, options);
    default:
      return absl::UnimplementedError(absl::StrCat(
          "this worker has no ", Collective_Name(exchange.collective())));
  }
}

}  // namespace troupe
