package dynamodb

import "github.com/weir-limiter/weir"

// piece is what a lease stands for on one shard. It counts milli-units, since a shard's share may
// be less than a unit; all pieces together are whole units.
type piece struct {
	milli int64
	shard int
}

// pieceMark is by how much a mark holds the shard beside the thousandths.
const pieceMark = 1000

// pieceOf reads a piece as the limiter keeps it: the mark has the shard, and what is below a unit.
func pieceOf(p weir.Piece) piece {
	return piece{p.Units*1000 + p.Mark%pieceMark, int(p.Mark / pieceMark)}
}

// kept is the piece as the limiter keeps it.
func (p piece) kept() weir.Piece {
	return weir.Piece{Units: p.milli / 1000, Mark: int64(p.shard)*pieceMark + p.milli%1000}
}
