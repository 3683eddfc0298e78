// CRC-32C (Castagnoli, reflected polynomial 0x82f63b78, as in iSCSI and ext4):
// the checksum of every file that Troupe writes.
#ifndef TROUPE_PROTO_BASE_CRC32C_H_
#define TROUPE_PROTO_BASE_CRC32C_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace troupe {

// The checksum of `crc`'s bytes followed by `data`; start with crc = 0.
// Uses the SSE 4.2 instruction where the processor has it.
uint32_t ExtendCrc32c(uint32_t crc, absl::string_view data);

inline uint32_t Crc32c(absl::string_view data) { return ExtendCrc32c(0, data); }

}  // namespace troupe

#endif  // TROUPE_PROTO_BASE_CRC32C_H_
