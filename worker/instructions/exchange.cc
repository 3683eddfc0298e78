#include "worker/instructions/exchange.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "proto/plan/exchange_places.h"
#include "proto/plan/ops/op_view.h"
#include "worker/instructions/exchange_rows.h"
#include "worker/instructions/run_collective.h"
#include "worker/layers/element_dtype.h"

namespace troupe {
namespace {

CommBuffer BufferOf(const OperandBytes& operand, DType element) {
  return {.data = operand.data,
          .elements = operand.bytes / static_cast<int64_t>(DTypeBytes(element)),
          .element = element};
}

const UnitTable& TableOf(const Call& call) {
  const Plan& plan = *call.state.plan;
  return plan.tables(plan.units(call.instruction.unit()).table());
}

const Op& OpOf(const Call& call) {
  return TableOf(call).ops(call.instruction.exchange().op());
}

const char* WhatMoves(const Call& call) {
  if (!call.instruction.exchange().backward()) return "values";
  // Values, which go the way of gradients.
  return OpOf(call).kind() == Op::RETURN ? "values that come back"
                                         : "gradients";
}

// Rows of tokens, in blocks as large as SIZES says.
absl::Status RunRound(const Call& call, const CommBuffer& from,
                      const CommBuffer& to, const CommOptions& options) {
  const OperandBytes sizes = BytesOfOperand(call, Instruction::SIZES);
  CHECK(sizes.data != nullptr) << "an exchange of rows needs SIZES";
  std::vector<int32_t> offsets(sizes.bytes / sizeof(int32_t));
  Device& device = DeviceOf(call);
  device.CopyToHost(offsets.data(), sizes.data, sizes.bytes);
  RETURN_IF_ERROR(device.Synchronize());
  const Op& op = OpOf(call);
  return ExchangeRows(
      {.offsets = offsets,
       .ranks = op.round().ranks(),
       .round = op.round().number(),
       .columns = ExchangedColumns(OpView(TableOf(call), op).input("x")),
       .to_experts =
           op.round().back() == call.instruction.exchange().backward(),
       .from = from,
       .to = to},
      *call.state.communicators.at(call.instruction.group()), options);
}

}  // namespace

absl::Status RunExchange(const Call& call) {
  const Instruction& instruction = call.instruction;
  const Instruction::Exchange& exchange = instruction.exchange();
  const DType element = DTypeOfElement(exchange.dtype());
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
  if (OpOf(call).has_round()) return RunRound(call, from, to, options);
  return RunCollective(exchange.collective(),
                       {.from = from,
                        .to = to,
                        .backward = exchange.backward(),
                        .root = OpOf(call).exchange().root()},
                       communicator, options);
}

}  // namespace troupe
