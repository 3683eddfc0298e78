// The address under which others reach a server that listens on all of them:
// "0.0.0.0:4321" is where it listens, but nowhere to connect to.
#ifndef TROUPE_SCHEDULER_PUBLISHED_ADDRESS_H_
#define TROUPE_SCHEDULER_PUBLISHED_ADDRESS_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"

namespace troupe {

// `address` with what `this_host` says in place of a host that means all
// addresses ("0.0.0.0", "[::]", "::", "*"); any other is returned as it is. It
// may be a HOST:PORT or an http URL of one.
std::string PublishedAddress(absl::string_view address,
                             absl::FunctionRef<std::string()> this_host);

// This machine's address on the way to others, "10.1.2.3"; its name where it
// has no way to any.
std::string AddressOfThisHost();

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PUBLISHED_ADDRESS_H_
