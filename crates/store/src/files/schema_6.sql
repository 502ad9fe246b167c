-- Migration 6: a message may wait while a long conversation goes on; what waits is read without it.
CREATE INDEX records_about_queue ON records (session, seq)
    WHERE body GLOB '{"type":"message_*' OR body GLOB '{"type":"queue_*';
