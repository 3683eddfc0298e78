#include "worker/instructions/exchange.h"

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "worker/instructions/run_collective.h"

namespace troupe {
namespace {

CommBuffer BufferOf(const OperandBytes& operand, Element element) {
  return {
      .data = operand.data,
      .elements = operand.bytes / static_cast<int64_t>(ElementBytes(element)),
      .element = element};
}

const Op& OpOf(const Call& call) {
  const Plan& plan = *call.state.plan;
  const Unit& unit = plan.units(call.instruction.unit());
  return plan.tables(unit.table()).ops(call.instruction.exchange().op());
}

const char* WhatMoves(const Call& call) {
  if (!call.instruction.exchange().backward()) return "values";
  // Values, which go the way of gradients.
  return OpOf(call).kind() == Op::RETURN ? "values that come back"
                                         : "gradients";
}

}  // namespace

absl::Status RunExchange(const Call& call) {
  const Instruction& instruction = call.instruction;
  const Instruction::Exchange& exchange = instruction.exchange();
  const Element element = ElementOf(exchange.dtype());
  const OperandBytes to_bytes = BytesOfOperand(call, Instruction::TO);
  const OperandBytes from_bytes = BytesOfOperand(call, Instruction::FROM);
  Communicator& communicator =
      *call.state.communicators.at(instruction.group());
  if (exchange.collective() == SLICE) {
    // Each rank has the whole: nobody waits for another.
    const int64_t begin = communicator.rank() * to_bytes.bytes;
    DeviceOf(call).CopyWithin(to_bytes.data, from_bytes.data + begin,
                              to_bytes.bytes);
    return absl::OkStatus();
  }
  const CommBuffer to = BufferOf(to_bytes, element);
  const CommBuffer from = BufferOf(from_bytes, element);
  const CommOptions options = CommOptionsOf(
      call,
      absl::StrCat(WhatMoves(call), exchange.again() ? ", once more," : "",
                   " within unit ", instruction.unit(), ", op ", exchange.op(),
                   ", micro-batch ", instruction.micro_batch()));
  return RunCollective(exchange.collective(),
                       {.from = from,
                        .to = to,
                        .backward = exchange.backward(),
                        .root = OpOf(call).exchange().root()},
                       communicator, options);
}

}  // namespace troupe
