// oneDNN's C++ interface reports errors as exceptions, which no code of ours
// knows. So every use of it is inside of a call of this:
//
//   RETURN_IF_ERROR(CallOneDnn([&] { product.execute(stream, arguments); }));
#ifndef TROUPE_OPS_CPU_ONEDNN_H_
#define TROUPE_OPS_CPU_ONEDNN_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace troupe {

// Unimplemented where oneDNN has no code for what it is asked for on this
// processor, ResourceExhausted without memory, else Internal.
absl::Status CallOneDnn(absl::FunctionRef<void()> body);

}  // namespace troupe

#endif  // TROUPE_OPS_CPU_ONEDNN_H_
