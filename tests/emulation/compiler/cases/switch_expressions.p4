// Statements: switch on expressions, with shared labels and default
enum Shape { Round, Square, Odd }
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        Shape shape = Shape.Odd;
        switch (hdr.data.a & 0x0f) {
            1: { hdr.data.b = 1; shape = Shape.Round; }
            2:
            3: { hdr.data.b = 2; shape = Shape.Square; }
            default: { hdr.data.b = 3; }
        }
        switch (shape) {
            Shape.Round: { hdr.data.c = 0x11; }
            Shape.Square: { hdr.data.c = 0x22; }
        }
    }
}

#include "include/end.p4"
