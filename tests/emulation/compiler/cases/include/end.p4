// What every language case ends with; the case has declared control CaseIngress.
#ifndef OWN_VERIFY
control NoVerify(inout headers_t hdr, inout metadata_t meta) { apply {} }
#endif

#ifndef OWN_COMPUTE
control Compute(inout headers_t hdr, inout metadata_t meta) { apply {} }
#endif

#ifndef OWN_EGRESS
control CaseEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) { apply {} }
#endif

#ifndef OWN_DEPARSER
control Deparse(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
#endif

V1Switch(CaseParser(), NoVerify(), CaseIngress(), CaseEgress(), Compute(), Deparse()) main;
