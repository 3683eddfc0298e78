#include "proto/trust/member_files.h"

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/trust/private_file.h"

namespace troupe {
namespace {

absl::Status Check(const MemberFiles& files, PeerRole role, absl::Time now) {
  KeyAndCertificate member;
  ASSIGN_OR_RETURN(const std::string authority, ReadSmallFile(files.authority));
  ASSIGN_OR_RETURN(member.certificate, ReadSmallFile(files.certificate));
  ASSIGN_OR_RETURN(member.key, ReadPrivateFile(files.key));
  return CheckCertificate(member, authority, role, now);
}

}  // namespace

MemberFiles FilesOfMember(const std::string& directory) {
  return {.authority = absl::StrCat(directory, "/authority.pem"),
          .certificate = absl::StrCat(directory, "/certificate.pem"),
          .key = absl::StrCat(directory, "/key.pem")};
}

absl::Status WriteMemberFiles(const std::string& directory,
                              const KeyAndCertificate& member,
                              absl::string_view authority) {
  RETURN_IF_ERROR(MakePrivateDirectory(directory));
  const MemberFiles files = FilesOfMember(directory);
  RETURN_IF_ERROR(WritePrivateFile(files.authority, authority));
  RETURN_IF_ERROR(WritePrivateFile(files.key, member.key));
  return WritePrivateFile(files.certificate, member.certificate);
}

absl::Status CheckMemberFiles(const std::string& directory, PeerRole role,
                              absl::Time now) {
  const absl::Status status = Check(FilesOfMember(directory), role, now);
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat("the certificate in ", directory,
                                   " is of no use: ", status.message(),
                                   "; make another with: troupe cluster ",
                                   "certificate HOST --role ", RoleName(role)));
}

}  // namespace troupe
